#include "tandem/distribute/internal/rpc/local/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMinRegion = std::size_t{256} << 10;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Regions of few sizes fit many messages. Pages that no message has reached take no memory, but
// count against the limit.
std::size_t region_size(std::size_t needed) {
  if (needed <= kMinRegion) return kMinRegion;
  const std::size_t quarter = std::bit_floor(needed - 1) / 4;
  return (needed + quarter - 1) / quarter * quarter;
}

char* map_shared(const Descriptor& descriptor, std::size_t size) {
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor.number(), 0);
  return start == MAP_FAILED ? nullptr : static_cast<char*>(start);
}

// Where the message begins so that its largest piece is aligned as it is here: that of a tensor for
// vector instructions, and within a message that is passed on still so.
std::size_t offset_of(const Bytes& message) {
  std::size_t at = 0, largest = 0, offset = 0;
  for (const Bytes::Piece& piece : message.pieces()) {
    if (piece.memory.size() > largest) {
      largest = piece.memory.size();
      offset = (reinterpret_cast<std::uintptr_t>(piece.memory.data()) - at) % kAlignment;
    }
    at += piece.memory.size();
  }
  return SharedRegion::kHeaderSize + offset;
}

}  // namespace

std::shared_ptr<SharedRegion> SharedRegion::create(std::size_t size, Descriptor& descriptor) {
  Descriptor made(::memfd_create("tandem-message", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.is_open() || ::ftruncate(made.number(), static_cast<off_t>(size)) != 0 ||
      ::fcntl(made.number(), F_ADD_SEALS, kSeals) != 0)
    return nullptr;
  char* start = map_shared(made, size);
  if (!start) return nullptr;
  std::construct_at(reinterpret_cast<std::atomic<std::uint32_t>*>(start), 0u);
  descriptor = std::move(made);
  return std::make_shared<SharedRegion>(start, size);
}

std::shared_ptr<SharedRegion> SharedRegion::map(const Descriptor& descriptor, std::uint64_t size) {
  struct stat file {};
  const int seals = ::fcntl(descriptor.number(), F_GET_SEALS);  // -1 for other files
  if (size <= kHeaderSize || size > std::numeric_limits<std::int64_t>::max() || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0 || ::fstat(descriptor.number(), &file) != 0 ||
      static_cast<std::uint64_t>(file.st_size) != size)
    throw InvalidArgumentError(
        "The peer's descriptor is not a sealed memfd of the announced size.");
  char* start = map_shared(descriptor, size);
  if (!start) {
    throw ResourceExhaustedError(
        cat("A peer's ", size,
            " bytes of shared memory cannot be mapped: this process has no "
            "address space left for them (ulimit -v)."));
  }
  return std::make_shared<SharedRegion>(start, size);
}

SharedRegion::~SharedRegion() { ::munmap(start_, size_); }

OutgoingRegions::~OutgoingRegions() {
  for (const auto& [id, region] : regions_) limit_.release(region.memory->size());
}

bool OutgoingRegions::is_free(const Outgoing& region) {
  return !region.is_writing && region.memory->in_use().load(std::memory_order_acquire) == 0;
}

std::vector<std::uint32_t> OutgoingRegions::trim() {
  const MutexLock lock(mutex_);
  std::vector<std::uint32_t> forgotten = std::exchange(unannounced_, {});
  forget_unused(Clock::now() - kKept, forgotten);
  return forgotten;
}

bool OutgoingRegions::empty() const {
  const MutexLock lock(mutex_);
  return regions_.empty();
}

void OutgoingRegions::forget_unused(Clock::time_point before,
                                    std::vector<std::uint32_t>& forgotten) {
  for (auto each = regions_.begin(); each != regions_.end();) {
    if (!is_free(each->second) || each->second.used > before) {
      ++each;
      continue;
    }
    limit_.release(each->second.memory->size());
    forgotten.push_back(each->first);
    each = regions_.erase(each);
  }
}

// The smallest free one; 0: there is none. A much larger one is left to messages of its size.
std::uint32_t OutgoingRegions::find(std::size_t size) const {
  std::uint32_t best = 0;
  std::size_t best_size = std::max(kMinRegion, 4 * size) + 1;
  for (const auto& [id, region] : regions_) {
    if (region.memory->size() < size || region.memory->size() >= best_size) continue;
    if (!is_free(region)) continue;
    best = id;
    best_size = region.memory->size();
  }
  return best;
}

bool OutgoingRegions::add(std::size_t size, Placed& placed) {
  if (regions_.size() >= kMaxRegions) return false;
  if (!limit_.acquire(size)) {
    forget_unused(Clock::now(), placed.forgotten);
    if (!limit_.acquire(size)) return false;
  }
  std::shared_ptr<SharedRegion> memory = SharedRegion::create(size, placed.descriptor);
  if (!memory) {
    limit_.release(size);
    return false;
  }
  placed.region = ++last_id_;
  placed.size = size;
  regions_[placed.region].memory = std::move(memory);
  return true;
}

std::optional<OutgoingRegions::Placed> OutgoingRegions::place(const Bytes& message) {
  const std::size_t offset = offset_of(message);
  const std::size_t needed = offset + message.size();
  Placed placed;
  placed.offset = static_cast<std::uint32_t>(offset);
  std::shared_ptr<SharedRegion> memory;
  {
    const MutexLock lock(mutex_);
    placed.region = find(needed);
    if (placed.region == 0 && !add(region_size(needed), placed)) {
      // The peer learns what has been released when the next region is found.
      for (const std::uint32_t id : placed.forgotten) unannounced_.push_back(id);
      return std::nullopt;
    }
    Outgoing& region = regions_[placed.region];
    region.is_writing = true;
    region.used = Clock::now();
    memory = region.memory;
    placed.forgotten.insert(placed.forgotten.end(), unannounced_.begin(), unannounced_.end());
    unannounced_.clear();
  }
  char* to = memory->at(offset);
  for (const Bytes::Piece& piece : message.pieces()) {
    std::memcpy(to, piece.memory.data(), piece.memory.size());
    to += piece.memory.size();
  }
  memory->in_use().store(1, std::memory_order_release);
  const MutexLock lock(mutex_);
  regions_[placed.region].is_writing = false;
  return placed;
}

// A peer's region, and whether a message of it is held here.
struct IncomingRegions::Incoming {
  explicit Incoming(std::shared_ptr<SharedRegion> mapped) : memory(std::move(mapped)) {}
  const std::shared_ptr<SharedRegion> memory;
  std::atomic<bool> is_held{false};
};

void IncomingRegions::add(std::uint32_t id, const Descriptor& descriptor, std::uint64_t size) {
  if (regions_.size() >= kMaxKnown || regions_.contains(id))
    throw InvalidArgumentError("A peer shares too many regions of memory, or one twice.");
  regions_[id] = std::make_shared<Incoming>(SharedRegion::map(descriptor, size));
}

void IncomingRegions::forget(std::uint32_t id) {
  if (regions_.erase(id) == 0)
    throw InvalidArgumentError("A peer takes back memory that it has not shared.");
}

Bytes IncomingRegions::take(std::uint32_t id, std::uint32_t offset, std::uint64_t size) {
  const auto found = regions_.find(id);
  if (found == regions_.end())
    throw InvalidArgumentError("A message lies in memory that its sender has not shared.");
  const std::shared_ptr<Incoming>& region = found->second;
  const std::size_t capacity = region->memory->size();
  if (offset < SharedRegion::kHeaderSize || offset > capacity || size > capacity - offset)
    throw InvalidArgumentError("A message does not lie within the memory that its sender shares.");
  if (region->is_held.exchange(true))
    throw InvalidArgumentError("A message lies in memory of another one that is still in use.");
  const char* start = region->memory->at(offset);
  const std::shared_ptr<const void> owner(start, [region](const void*) {
    region->is_held.store(false);
    region->memory->in_use().store(0, std::memory_order_release);
  });
  Bytes message;
  message.append({start, static_cast<std::size_t>(size)}, owner);
  return message;
}

}  // namespace tandem::distribute
