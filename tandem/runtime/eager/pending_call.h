#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tandem/core/cached_object.h"
#include "tandem/core/error.h"
#include "tandem/core/ref.h"
#include "tandem/device/block_allocator.h"
#include "tandem/device/device.h"

namespace tandem {

class DeviceLaunches;  // tandem/runtime/eager/device_launch.h
class PendingCall;

/// Calls that another one comes after. The first few, which mostly are all, take no memory.
class PendingCallList {
 public:
  bool empty() const { return !few_[0]; }
  void add(Ref<PendingCall> call);
  /// The call, if it is one alone; else null.
  Ref<PendingCall> only() const { return few_[1] ? nullptr : few_[0]; }
  bool contains(const PendingCall* call) const {
    return any_of([call](const Ref<PendingCall>& other) { return other.get() == call; });
  }
  template <class Predicate>
  bool any_of(const Predicate& predicate) const {
    return std::any_of(few_.begin(), few_.begin() + num_few(), predicate) ||
           std::any_of(more_.begin(), more_.end(), predicate);
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    std::for_each(few_.begin(), few_.begin() + num_few(), visit);
    std::for_each(more_.begin(), more_.end(), visit);
  }
  /// Those for which the predicate holds go to `to`.
  template <class Predicate>
  void move_if(const Predicate& predicate, PendingCallList& to) {
    PendingCallList rest;
    for_each([&](const Ref<PendingCall>& call) { (predicate(call) ? to : rest).add(call); });
    *this = std::move(rest);
  }

 private:
  std::ptrdiff_t num_few() const { return few_[0] ? (few_[1] ? 2 : 1) : 0; }

  std::array<Ref<PendingCall>, 2> few_;  // from the left
  std::vector<Ref<PendingCall>> more_;
};

/// An eager call that a device runs while its caller goes on: done once its results are there or
/// will never be. Thread-safe.
class PendingCall final : public Event, public CachedObject {
 public:
  bool done() const override;
  /// Throws why the call failed, each time.
  void wait() override;

  /// Why the call failed as far as is known already; null: it did not.
  std::exception_ptr error() const;
  /// The call fails unless these, which it began after, succeed. Before it runs.
  void needs(PendingCallList before);
  /// Known on the device's thread, before `finish`: what runs behind it on the stream sees it.
  void fail(std::exception_ptr error);
  void finish(std::exception_ptr error);
  /// The results are there, though the device has not reported it yet.
  void mark_run();
  bool has_run() const;

 private:
  friend class PendingCalls;
  // As one of its runtime's PendingCalls, whose lock guards them:
  std::uint64_t number_ = 0;
  bool listed_ = false;
  PendingCall* before_ = nullptr;
  PendingCall* after_ = nullptr;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool has_run_ = false;
  bool finished_ = false;
  // Once true: calls share what they need, and to ask for it along each way takes for ever.
  mutable std::atomic<bool> done_{false};
  mutable std::atomic<bool> succeeded_{false};
  std::exception_ptr error_;
  PendingCallList needs_;  ///< of those that were not done when this one was
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
  PendingCalls();
  ~PendingCalls();
  PendingCalls(const PendingCalls&) = delete;
  PendingCalls& operator=(const PendingCalls&) = delete;

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
  /// What describes calls on their way, for using again.
  DeviceLaunches& launches() { return *launches_; }
  /// Until when calls were ahead, nanoseconds of the steady clock: now if some are; 0: none ever.
  std::int64_t ahead_until() const;

 private:
  void append(PendingCall& call);
  void remove(PendingCall& call);

  const std::unique_ptr<DeviceLaunches> launches_;
  mutable std::mutex mutex_;
  std::condition_variable left_;
  int inside_ = 0;
  bool closed_ = false;
  std::uint64_t last_ = 0;        ///< number given
  PendingCall* first_ = nullptr;  ///< of those ahead, which are kept, by number
  PendingCall* newest_ = nullptr;
  std::size_t num_ahead_ = 0;
  std::int64_t ahead_until_ = 0;
};

}  // namespace tandem
