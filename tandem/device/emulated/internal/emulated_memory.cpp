#include "tandem/device/emulated/internal/emulated_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/internal/byte_size.h"

namespace tandem {
namespace {

constexpr std::size_t kUnit = BlockAllocator::kAlignment;
constexpr int kPoison = 0xDB;  // as a float, -1.2e17: nobody takes it for a result
constexpr int kGuard = 0xFD;
constexpr std::size_t kGuardBytes = 512;  // the most that is checked behind a block
constexpr std::size_t kFirstPadding = std::size_t{64} << 10;
constexpr std::size_t kPoisonedWhole = std::size_t{1} << 20;

// Gaps for guards: an eighth of the memory, and some so that small devices have enough.
std::size_t padding_of(std::size_t bytes, bool first) {
  return bytes / 8 / kUnit * kUnit + (first ? kFirstPadding : 0);
}

[[noreturn]] void throw_no_room(std::size_t bytes, const char* what) {
  throw ResourceExhaustedError(cat("The host has no room to emulate a device with ",
                                   byte_text(bytes), " of memory: ", what, ": ",
                                   std::strerror(errno), ". Emulate less (memory=...)."));
}

// All of a block up to a size; of larger ones the ends, and a line of each page.
void poison(std::byte* at, std::size_t bytes) {
  if (bytes <= kPoisonedWhole) {
    std::memset(at, kPoison, bytes);
    return;
  }
  constexpr std::size_t kEnd = std::size_t{64} << 10, kPage = 4096, kLine = 64;
  std::memset(at, kPoison, kEnd);
  for (std::size_t i = kEnd; i < bytes - kEnd; i += kPage) std::memset(at + i, kPoison, kLine);
  std::memset(at + bytes - kEnd, kPoison, kEnd);
}

}  // namespace

void EmulatedReports::add(std::exception_ptr error) noexcept {
  std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  any_.store(true);
}

void EmulatedReports::raise() {
  if (!any_.load()) return;
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    error = std::exchange(error_, nullptr);
    any_.store(false);
  }
  if (error) std::rethrow_exception(error);
}

EmulatedMemory::EmulatedMemory(std::shared_ptr<EmulatedPhysical> physical, std::size_t capacity,
                               std::string device, std::shared_ptr<EmulatedReports> reports)
    : physical_(std::move(physical)),
      device_(std::move(device)),
      reports_(std::move(reports)),
      guarded_(!physical_->spec().timed) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t needed = capacity + (guarded_ ? padding_of(capacity, true) : 0);
  view_bytes_ = (needed + page - 1) / page * page;
  const int file = memfd_create("tandem-emulated", MFD_CLOEXEC);
  if (file < 0) throw_no_room(capacity, "memfd_create");
  // Two views side by side, and a page behind them that nobody may touch.
  const std::size_t total = 2 * view_bytes_ + page;
  void* at = MAP_FAILED;
  const char* what = "ftruncate";
  if (ftruncate(file, static_cast<off_t>(view_bytes_)) == 0) {
    what = "mmap";
    at = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (at != MAP_FAILED) {
    base_ = static_cast<std::byte*>(at);
    const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    if (mmap(base_, view_bytes_, PROT_NONE, flags, file, 0) == MAP_FAILED ||
        mmap(base_ + view_bytes_, view_bytes_, PROT_READ | PROT_WRITE, flags, file, 0) ==
            MAP_FAILED) {
      const int error = errno;
      munmap(base_, total);
      errno = error;
      at = MAP_FAILED;
    }
  }
  const int error = errno;
  close(file);
  errno = error;
  if (at == MAP_FAILED) throw_no_room(capacity, what);
  // Device memory does not belong in a core dump of the host.
  madvise(base_, total, MADV_DONTDUMP);
  space_.kernel_offset = static_cast<std::ptrdiff_t>(view_bytes_);
}

EmulatedMemory::~EmulatedMemory() {
  munmap(base_, 2 * view_bytes_ + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  physical_->return_memory(taken_);
}

std::optional<MemoryRegion> EmulatedMemory::grow(std::size_t least, std::size_t wanted) {
  const std::size_t given = physical_->take_memory(least, wanted);
  if (given == 0) return {};
  MemoryRegion region{.begin = base_ + extent_,
                      .bytes = given,
                      .padding = guarded_ ? padding_of(given, extent_ == 0) : 0,
                      .continues = extent_ != 0};
  extent_ += region.bytes + region.padding;
  taken_ += given;
  return region;
}

// What others have taken, in short.
std::string EmulatedMemory::shortage() const {
  const std::size_t left = physical_->memory_left();
  if (left + taken_ == physical_->spec().memory) return {};
  return cat(physical_->id().name, " has ", byte_text(left), " left of ",
             byte_text(physical_->spec().memory), ", to be shared by its logical devices.");
}

std::string EmulatedMemory::way_to_more(std::size_t limit, std::size_t needed) const {
  if (limit < physical_->spec().memory) return RegionSource::way_to_more(limit, needed);
  if (std::max(needed, limit) > SIZE_MAX / 4) return {};
  std::string enough = byte_text(std::bit_ceil(std::max(needed, limit + 1)));
  std::erase(enough, ' ');  // as it is written there
  return cat("more memory for the emulated device (memory=", enough,
             " in TANDEM_EMULATE or td::config::emulate)");
}

void EmulatedMemory::on_allocate(std::byte* at, std::size_t bytes, std::size_t gap) {
  if (guarded_) std::memset(kernel_side(at) + bytes, kGuard, std::min(gap, kGuardBytes));
}

void EmulatedMemory::on_free(std::byte* at, std::size_t bytes, std::size_t gap,
                             std::string_view holder) noexcept {
  if (!guarded_) return;
  std::byte* const begin = kernel_side(at);
  const std::byte* const guard = begin + bytes;
  const std::byte* const end = guard + std::min(gap, kGuardBytes);
  const std::byte* const changed =
      std::find_if(guard, end, [](std::byte b) { return b != std::byte{kGuard}; });
  if (changed != end) {
    const std::string who = holder.empty() ? "without a name" : cat("of '", holder, '\'');
    reports_->add(std::make_exception_ptr(InternalError(
        cat("A block ", who, " on ", device_, " was written out of bounds: behind its ", bytes,
            " bytes, the byte at offset ", changed - begin,
            " was changed before the block was freed. The kernel that writes it (or its neighbour) "
            "is wrong."))));
  }
  poison(begin, bytes);
}

}  // namespace tandem
