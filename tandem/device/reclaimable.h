#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// Caches unused memory of a device for its next use.
class TANDEM_EXPORT Reclaimable {
 public:
  virtual ~Reclaimable();
  /// Frees it. Called by any thread, when an allocation would fail otherwise.
  virtual void reclaim() = 0;
};

/// Those of one allocator. Thread-safe.
class TANDEM_EXPORT Reclaimables {
 public:
  void add(Reclaimable& keeper);
  /// Once it returns `keeper` will not be called any more.
  void remove(Reclaimable& keeper);
  void reclaim();

  /// Threads that found no room queue here: one at a time waits for it, and a thread that asks for
  /// memory meanwhile comes after it. Else others take what it waited for, again and again.
  std::mutex& room_queue() { return room_queue_; }
  /// How many are in that queue.
  std::atomic<int>& room_queue_length() { return room_queue_length_; }

  /// How much the allocator could give in one piece when it was last looked at; 0: not known.
  std::size_t room() const { return room_.load(std::memory_order_relaxed); }
  void set_room(std::size_t bytes) { room_.store(bytes, std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::vector<Reclaimable*> reclaimables_;
  std::mutex room_queue_;
  std::atomic<int> room_queue_length_{0};
  std::atomic<std::size_t> room_{0};
};

/// One keeper among those of an allocator, for as long as this lives; shorter than either.
class TANDEM_EXPORT ReclaimableRegistration {
 public:
  ReclaimableRegistration(Reclaimables& keepers, Reclaimable& keeper);
  ReclaimableRegistration(ReclaimableRegistration&& other) noexcept;
  ReclaimableRegistration& operator=(ReclaimableRegistration&&) = delete;
  ~ReclaimableRegistration();

 private:
  Reclaimables* reclaimables_;  // null: moved from
  Reclaimable& keeper_;
};

}  // namespace tandem
