#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/ref.h"
#include "tandem/device/block_allocator.h"
#include "tandem/device/device.h"

namespace tandem {

/// An eager call that a device runs while its caller goes on: done once its results are there or
/// will never be. Thread-safe.
class PendingCall final : public Event {
 public:
  bool done() const override;
  /// Throws why the call failed, each time.
  void wait() override;

  /// Why the call failed as far as is known already; null: it did not.
  std::exception_ptr error() const;
  /// The call fails unless these, which it began after, succeed. Before it is handed over.
  void needs(std::vector<Ref<PendingCall>> before) { needs_ = std::move(before); }
  /// Known on the device's thread, before `finish`: what runs behind it on the stream sees it.
  void fail(std::exception_ptr error);
  void finish(std::exception_ptr error);
  /// The results are there, though the device has not reported it yet.
  void mark_run();
  bool has_run() const;

 private:
  friend class PendingCalls;
  std::uint64_t number_ = 0;  ///< among those of its runtime; 0: not one of them yet
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool has_run_ = false;
  bool finished_ = false;
  // Once true: calls share what they need, and to ask for it along each way takes for ever.
  mutable std::atomic<bool> done_{false};
  mutable std::atomic<bool> succeeded_{false};
  std::exception_ptr error_;
  std::vector<Ref<PendingCall>> needs_;  ///< of those that were not done when this one was
};

/// Waits until the device has run what eager calls gave it so far, which then holds no memory; not
/// for how that ended. False if there was nothing to wait for.
bool settle(Device& device);

/// What waiting for room on a device takes: a place in its queue, and attempts. On one thread.
class RoomRequest {
 public:
  RoomRequest(Device& device, std::size_t bytes);
  ~RoomRequest();
  RoomRequest(const RoomRequest&) = delete;
  RoomRequest& operator=(const RoomRequest&) = delete;

  /// Before an attempt: queues behind threads that wait for room already, and where the device has
  /// none for that many bytes in one piece, waits for the calls that it runs.
  void prepare();
  /// After an attempt that found no room: whether another one may.
  bool may_retry();

 private:
  bool lacks_room() const;
  void enter_queue();

  Device& device_;
  const std::size_t bytes_;
  std::unique_lock<std::mutex> turn_;
  std::size_t in_use_ = 0;  // when the last attempt failed
  int moves_ = 0;           // attempts after which something had changed
  std::chrono::steady_clock::time_point give_up_{};
  std::chrono::microseconds pause_{};
};

/// What `allocate` returns, which takes `bytes` of the device, in one piece. Where there is no room
/// the device is settled first. Not on the device's own threads.
template <class Allocate>
auto allocate_with_room(Device& device, std::size_t bytes, const Allocate& allocate) {
  for (RoomRequest request(device, bytes);;) {
    request.prepare();
    try {
      return allocate();
    } catch (const NoRoomError&) {
      if (!request.may_retry()) throw;
    }
  }
}

/// The late calls of a runtime. Thread-safe.
class PendingCalls {
 public:
  /// For a block in which a late call uses the runtime. Throws CancelledError once it is closed.
  class Use {
   public:
    explicit Use(PendingCalls& calls);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    PendingCalls& calls_;
  };

  /// A call that is about to be handed over. Waits where thousands are ahead of it: what they hold
  /// is not free yet.
  void add(const Ref<PendingCall>& call);
  /// `call->finish`, and it is no longer waited for.
  void finish(const Ref<PendingCall>& call, std::exception_ptr error);
  /// Waits for the calls so far, as long as any of them ends: what cannot end, behind a stalled
  /// copy, is left.
  void drain();
  /// Calls that have not begun fail, and calls made from now on; waits for those that have begun.
  void close();
  /// Until when calls were ahead, nanoseconds of the steady clock: now if some are; 0: none ever.
  std::int64_t ahead_until() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable left_;
  int inside_ = 0;
  bool closed_ = false;
  std::uint64_t last_ = 0;                           ///< number given
  std::map<std::uint64_t, Ref<PendingCall>> ahead_;  ///< by number
  std::int64_t ahead_until_ = 0;
};

}  // namespace tandem
