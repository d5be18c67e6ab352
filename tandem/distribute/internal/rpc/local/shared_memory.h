#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/bytes.h"
#include "tandem/distribute/internal/rpc/local/descriptor.h"

/// Large messages lie in memory that sender and receiver share: *regions*, each of which holds one
/// message at a time. The sender makes them, writes a message, and uses a region again once the
/// receiver has let go of what it holds. A region can't be made smaller, so that a sender cannot
/// have its receiver killed by a SIGBUS.
namespace tandem::distribute {

/// How much memory a process shares out. Thread-safe.
class SharedMemoryLimit {
 public:
  explicit SharedMemoryLimit(std::size_t limit) : limit_(limit) {}
  bool acquire(std::size_t size) {
    if (used_.fetch_add(size) + size <= limit_) return true;
    used_.fetch_sub(size);
    return false;
  }
  void release(std::size_t size) { used_.fetch_sub(size); }
  std::size_t used() const { return used_.load(); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

/// A region, mapped. Its first bytes say whether a message is in it.
class SharedRegion {
 public:
  static constexpr std::size_t kHeaderSize = 64;

  /// A new one of `size` bytes, the header included; null if there is no such memory. The
  /// descriptor is what the receiver maps.
  static std::shared_ptr<SharedRegion> create(std::size_t size, Descriptor& descriptor);
  /// A peer's. Throws InvalidArgumentError if it is not of that size, or might shrink.
  static std::shared_ptr<SharedRegion> map(const Descriptor& descriptor, std::uint64_t size);
  /// Takes a mapping over.
  SharedRegion(char* start, std::size_t size) : start_(start), size_(size) {}
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  std::size_t size() const { return size_; }
  char* at(std::size_t offset) const { return start_ + offset; }
  /// Set by the sender, cleared by the receiver.
  std::atomic<std::uint32_t>& in_use() const {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(start_);
  }

 private:
  char* const start_;
  const std::size_t size_;
};

/// The regions that one end of a connection sends messages in. Thread-safe.
class OutgoingRegions {
 public:
  explicit OutgoingRegions(SharedMemoryLimit& limit) : limit_(limit) {}
  ~OutgoingRegions();

  struct Placed {
    std::uint32_t region = 0;
    std::uint32_t offset = 0;
    Descriptor descriptor = {};                 ///< open: the peer does not know the region yet
    std::uint64_t size = 0;                     ///< of the region
    std::vector<std::uint32_t> forgotten = {};  ///< the peer is to unmap them first
  };
  /// Copies a message into a region, where its largest piece is aligned as it was; nothing if there
  /// is no memory left.
  std::optional<Placed> place(const Bytes& message);
  /// Releases what no message has needed for `kKept`; the peer is to unmap these.
  std::vector<std::uint32_t> trim();
  bool empty() const;

  static constexpr auto kKept = std::chrono::seconds(20);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMaxRegions = 1024;

  struct Outgoing {
    std::shared_ptr<SharedRegion> memory;
    bool is_writing = false;
    Clock::time_point used = {};
  };
  static bool is_free(const Outgoing& region);
  void forget_unused(Clock::time_point before, std::vector<std::uint32_t>& forgotten)
      TANDEM_REQUIRES(mutex_);
  std::uint32_t find(std::size_t size) const TANDEM_REQUIRES(mutex_);
  bool add(std::size_t size, Placed& placed) TANDEM_REQUIRES(mutex_);

  SharedMemoryLimit& limit_;
  mutable Mutex mutex_;
  std::map<std::uint32_t, Outgoing> regions_ TANDEM_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> unannounced_ TANDEM_GUARDED_BY(mutex_);  // forgotten here alone
  std::uint32_t last_id_ TANDEM_GUARDED_BY(mutex_) = 0;
};

/// The regions of the other end. What it says is checked: methods throw InvalidArgumentError.
class IncomingRegions {
 public:
  /// Throws ResourceExhaustedError if the region cannot be mapped.
  void add(std::uint32_t id, const Descriptor& descriptor, std::uint64_t size);
  void forget(std::uint32_t id);
  /// The message there; the region is the sender's again when the last piece of it is let go of.
  Bytes take(std::uint32_t id, std::uint32_t offset, std::uint64_t size);

 private:
  // Twice what a sender has: it may announce one before what another thread has it forget.
  static constexpr std::size_t kMaxKnown = 2048;
  struct Incoming;
  std::map<std::uint32_t, std::shared_ptr<Incoming>> regions_;
};

}  // namespace tandem::distribute
