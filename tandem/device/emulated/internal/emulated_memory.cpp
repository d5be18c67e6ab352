#include "tandem/device/emulated/internal/emulated_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/internal/byte_size.h"

namespace tandem {
namespace {

constexpr std::size_t kUnit = BlockAllocator::kAlignment;
constexpr int kPoison = 0xDB;  // as a float, -1.2e17: no plausible result
constexpr int kGuard = 0xFD;
constexpr std::size_t kGuardBytes = 512;  // the most that is checked behind a block
constexpr std::size_t kFirstPadding = std::size_t{64} << 10;
constexpr std::size_t kPoisonedWhole = std::size_t{1} << 20;

// Gaps for guards: an eighth of the memory, and some so that small devices have enough.
std::size_t padding_of(std::size_t bytes, bool first) {
  return bytes / 8 / kUnit * kUnit + (first ? kFirstPadding : 0);
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
      guarded_(!physical_->spec().timed),
      views_(capacity + (guarded_ ? padding_of(capacity, true) : 0), capacity) {
  space_.kernel_offset = views_.offset();
}

EmulatedMemory::~EmulatedMemory() { physical_->return_memory(taken_); }

std::optional<MemoryRegion> EmulatedMemory::grow(std::size_t least, std::size_t wanted) {
  const std::size_t given = physical_->take_memory(least, wanted);
  if (given == 0) return {};
  MemoryRegion region{.begin = views_.tokens() + extent_,
                      .bytes = given,
                      .padding = guarded_ ? padding_of(given, extent_ == 0) : 0,
                      .continues = extent_ != 0};
  extent_ += region.bytes + region.padding;
  taken_ += given;
  return region;
}

void EmulatedMemory::take_back(const MemoryRegion& region) noexcept {
  physical_->return_memory(region.bytes);
  extent_ -= region.bytes + region.padding;
  taken_ -= region.bytes;
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
  constexpr std::size_t kMin = 4096;  // blocks are rounded up
  std::string enough = byte_text(std::bit_ceil(std::max({needed, limit + 1, kMin})));
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
