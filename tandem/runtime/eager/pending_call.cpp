#include "tandem/runtime/eager/pending_call.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/reclaimable.h"
#include "tandem/runtime/eager/device_launch.h"

namespace tandem {
namespace {

constexpr std::size_t kMax = 2048;
constexpr std::chrono::seconds kPatience{2};  // with calls of which none runs

std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::exception_ptr closed_error() {
  return std::make_exception_ptr(
      CancelledError("The call had not begun when its runtime was destroyed."));
}

}  // namespace

void PendingCallList::add(Ref<PendingCall> call) {
  const auto free = static_cast<std::size_t>(num_few());
  if (free < few_.size()) {
    few_[free] = std::move(call);
  } else {
    more_.push_back(std::move(call));
  }
}

bool PendingCall::done() const {
  if (done_.load(std::memory_order_acquire)) return true;
  PendingCallList needs;
  {
    std::lock_guard lock(mutex_);
    if (!finished_) return false;
    needs = needs_;
  }
  if (needs.any_of([](const auto& before) { return !before->done(); })) return false;
  done_.store(true, std::memory_order_release);
  return true;
}

void PendingCall::wait() {
  PendingCallList needs;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return finished_; });
    if (error_) std::rethrow_exception(error_);
    needs = needs_;
  }
  needs.for_each([](const auto& before) { before->wait(); });
}

std::exception_ptr PendingCall::error() const {
  if (succeeded_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(mutex_);
  if (error_) return error_;
  std::exception_ptr error;
  needs_.any_of([&](const auto& before) { return (error = before->error()) != nullptr; });
  if (error) return error;
  if (done_.load(std::memory_order_acquire)) succeeded_.store(true, std::memory_order_release);
  return nullptr;
}

void PendingCall::needs(PendingCallList before) {
  std::lock_guard lock(mutex_);
  needs_ = std::move(before);
}

void PendingCall::fail(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

void PendingCall::mark_run() {
  std::lock_guard lock(mutex_);
  has_run_ = true;
}

bool PendingCall::has_run() const {
  std::lock_guard lock(mutex_);
  return has_run_;
}

void PendingCall::finish(std::exception_ptr error) {
  PendingCallList over;  // let go of without the lock
  std::lock_guard lock(mutex_);
  if (finished_) return;
  const auto is_over = [&](const Ref<PendingCall>& before) {
    if (!before->done()) return false;
    if (!error) error = before->error();
    return true;
  };
  needs_.move_if(is_over, over);
  if (!error_) error_ = std::move(error);
  finished_ = true;
  changed_.notify_all();
}

bool settle(Device& device) {
  if (device.memory_space() == nullptr) return false;
  const Ref<Event> given = device.stream(StreamKind::kCompute).record();
  if (given->done()) return false;
  try {
    given->wait();
  } catch (const Error&) {  // the results of the failed call hold the error
  }
  return true;
}

RoomRequest::RoomRequest(Device& device, std::size_t bytes) : device_(device), bytes_(bytes) {}

RoomRequest::~RoomRequest() {
  if (turn_) --device_.allocator().reclaimables()->room_queue_length();
}

bool RoomRequest::lacks_room() const {
  if (device_.memory_space() == nullptr) return false;
  const Reclaimables* const known = device_.allocator().reclaimables();
  if (known && bytes_ <= known->room()) return false;
  const MemoryStats stats = device_.allocator().stats();
  return stats.limit != 0 && bytes_ > std::max(stats.largest_free, stats.limit - stats.reserved);
}

void RoomRequest::enter_queue() {
  Reclaimables* const queue = device_.allocator().reclaimables();
  if (turn_ || queue == nullptr) return;
  ++queue->room_queue_length();
  turn_ = std::unique_lock(queue->room_queue());
}

void RoomRequest::prepare() {
  if (device_.memory_space() == nullptr) return;
  if (Reclaimables* const queue = device_.allocator().reclaimables();
      queue && queue->room_queue_length() > 0)
    enter_queue();
  if (!lacks_room()) return;
  enter_queue();
  settle(device_);
}

// Behind the last call the device's threads still release what it held, and other threads hold
// memory for calls that they have yet to enqueue: it is time to give up when nothing moves.
bool RoomRequest::may_retry() {
  constexpr int kMaxMoves = 100;
  constexpr std::chrono::milliseconds kMaxStandstill{250};
  constexpr std::chrono::microseconds kShortestPause{100};
  constexpr std::chrono::microseconds kLongestPause{10'000};
  const MemoryStats stats = device_.allocator().stats();
  if (stats.limit != 0 && bytes_ > stats.limit) return false;
  enter_queue();
  const auto now = std::chrono::steady_clock::now();
  if (settle(device_) || moves_ == 0 || stats.current != in_use_) {
    if (++moves_ > kMaxMoves) return false;
    give_up_ = now + kMaxStandstill;
    pause_ = kShortestPause;
  } else if (now >= give_up_) {
    return false;
  }
  in_use_ = stats.current;
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  return true;
}

PendingCalls::PendingCalls() : launches_(std::make_unique<DeviceLaunches>()) {}

PendingCalls::~PendingCalls() {
  while (first_) remove(*first_);
}

// With the lock held, as for all that follows the list.
void PendingCalls::append(PendingCall& call) {
  call.retain();
  call.listed_ = true;
  call.before_ = newest_;
  (newest_ ? newest_->after_ : first_) = &call;
  newest_ = &call;
  ++num_ahead_;
}

void PendingCalls::remove(PendingCall& call) {
  (call.before_ ? call.before_->after_ : first_) = call.after_;
  (call.after_ ? call.after_->before_ : newest_) = call.before_;
  call.before_ = call.after_ = nullptr;
  call.listed_ = false;
  --num_ahead_;
  call.release();
}

PendingCalls::Use::Use(PendingCalls& calls) : calls_(calls) {
  std::lock_guard lock(calls_.mutex_);
  if (calls_.closed_)
    throw CancelledError("The call had not begun when its runtime was destroyed.");
  ++calls_.inside_;
}

PendingCalls::Use::~Use() {
  std::lock_guard lock(calls_.mutex_);
  if (--calls_.inside_ == 0) calls_.left_.notify_all();
}

void PendingCalls::add(const Ref<PendingCall>& call) {
  std::unique_lock lock(mutex_);
  left_.wait(lock, [this] { return closed_ || num_ahead_ < kMax; });
  if (closed_) std::rethrow_exception(closed_error());
  call->number_ = ++last_;
  append(*call);
}

void PendingCalls::finish(const Ref<PendingCall>& call, std::exception_ptr error) {
  call->finish(std::move(error));
  std::lock_guard lock(mutex_);
  if (call->listed_) remove(*call);
  if (!first_) ahead_until_ = steady_now();
  left_.notify_all();
}

std::int64_t PendingCalls::ahead_until() const {
  std::lock_guard lock(mutex_);
  return first_ ? steady_now() : ahead_until_;
}

void PendingCalls::drain() {
  std::unique_lock lock(mutex_);
  const std::uint64_t last = last_;  // calls made meanwhile are not waited for, nor do they count
  const auto left = [&] {
    std::size_t count = 0;
    for (const PendingCall* c = first_; c && c->number_ <= last; c = c->after_) ++count;
    return count;
  };
  const auto done = [&] { return !first_ || first_->number_ > last; };
  while (!done()) {
    const auto before = left();
    if (!left_.wait_for(lock, kPatience, done) && left() == before && inside_ == 0) return;
  }
}

void PendingCalls::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  left_.wait(lock, [this] { return inside_ == 0; });
  while (first_) {
    first_->finish(first_->has_run() ? nullptr : closed_error());
    remove(*first_);
  }
  left_.notify_all();
}

}  // namespace tandem
