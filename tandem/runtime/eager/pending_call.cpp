#include "tandem/runtime/eager/pending_call.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/reclaimable.h"

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

bool PendingCall::done() const {
  if (done_.load(std::memory_order_acquire)) return true;
  std::vector<Ref<PendingCall>> needs;
  {
    std::lock_guard lock(mutex_);
    if (!finished_) return false;
    needs = needs_;
  }
  for (const auto& before : needs) {
    if (!before->done()) return false;
  }
  done_.store(true, std::memory_order_release);
  return true;
}

void PendingCall::wait() {
  std::vector<Ref<PendingCall>> needs;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return finished_; });
    if (error_) std::rethrow_exception(error_);
    needs = needs_;
  }
  for (const auto& before : needs) before->wait();
}

std::exception_ptr PendingCall::error() const {
  if (succeeded_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(mutex_);
  if (error_) return error_;
  for (const auto& before : needs_) {
    if (std::exception_ptr error = before->error()) return error;
  }
  if (done_.load(std::memory_order_acquire)) succeeded_.store(true, std::memory_order_release);
  return nullptr;
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
  std::vector<Ref<PendingCall>> over;
  std::lock_guard lock(mutex_);
  if (finished_) return;
  for (auto& before : needs_) {
    if (!before->done()) continue;
    if (!error) error = before->error();
    over.push_back(std::move(before));
  }
  std::erase_if(needs_, [](const auto& before) { return before.get() == nullptr; });
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
  constexpr std::chrono::milliseconds kPatience{250};
  constexpr std::chrono::microseconds kShortestPause{100};
  constexpr std::chrono::microseconds kLongestPause{10'000};
  const MemoryStats stats = device_.allocator().stats();
  if (stats.limit != 0 && bytes_ > stats.limit) return false;
  enter_queue();
  const auto now = std::chrono::steady_clock::now();
  if (settle(device_) || moves_ == 0 || stats.current != in_use_) {
    if (++moves_ > kMaxMoves) return false;
    give_up_ = now + kPatience;
    pause_ = kShortestPause;
  } else if (now >= give_up_) {
    return false;
  }
  in_use_ = stats.current;
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  return true;
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
  left_.wait(lock, [this] { return closed_ || ahead_.size() < kMax; });
  if (closed_) std::rethrow_exception(closed_error());
  call->number_ = ++last_;
  ahead_.emplace(call->number_, call);
}

void PendingCalls::finish(const Ref<PendingCall>& call, std::exception_ptr error) {
  call->finish(std::move(error));
  std::lock_guard lock(mutex_);
  ahead_.erase(call->number_);
  if (ahead_.empty()) ahead_until_ = steady_now();
  left_.notify_all();
}

std::int64_t PendingCalls::ahead_until() const {
  std::lock_guard lock(mutex_);
  return ahead_.empty() ? ahead_until_ : steady_now();
}

void PendingCalls::drain() {
  std::unique_lock lock(mutex_);
  const std::uint64_t last = last_;  // calls made meanwhile are not waited for, nor do they count
  const auto left = [&] { return std::distance(ahead_.begin(), ahead_.upper_bound(last)); };
  const auto done = [&] { return ahead_.empty() || ahead_.begin()->first > last; };
  while (!done()) {
    const auto before = left();
    if (!left_.wait_for(lock, kPatience, done) && left() == before && inside_ == 0) return;
  }
}

void PendingCalls::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  left_.wait(lock, [this] { return inside_ == 0; });
  for (auto& [number, ref] : std::exchange(ahead_, {})) {
    ref->finish(ref->has_run() ? nullptr : closed_error());
  }
  left_.notify_all();
}

}  // namespace tandem
