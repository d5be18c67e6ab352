#include "tandem/runtime/execute/running_calls.h"

#include <algorithm>
#include <vector>

namespace tandem {
namespace {

thread_local std::vector<const RunningCalls*> t_inside;  // of the calls that this thread is in

}  // namespace

RunningCalls::Scope::Scope(RunningCalls& calls) : calls_(calls) {
  std::lock_guard lock(calls_.mutex_);
  ++calls_.running_;
  t_inside.push_back(&calls_);
}

RunningCalls::Scope::~Scope() {
  std::lock_guard lock(calls_.mutex_);
  t_inside.pop_back();
  if (--calls_.running_ == 0) calls_.over_.notify_all();
}

std::shared_ptr<const Cancellation> RunningCalls::closing_or(
    const std::shared_ptr<const Cancellation>& own) {
  {
    std::lock_guard lock(mutex_);
    if (own_ == own) return closing_or_own_;
  }
  // Made and destroyed without the lock: the old one may have to wait for a callback.
  std::shared_ptr<const Cancellation> made = std::make_shared<const Cancellation>(own, closing_);
  std::shared_ptr<const Cancellation> old_own = own, old = made;
  std::lock_guard lock(mutex_);
  own_.swap(old_own);
  closing_or_own_.swap(old);
  return made;
}

void RunningCalls::end() {
  closes_->cancel();
  if (std::find(t_inside.begin(), t_inside.end(), this) != t_inside.end()) return;
  std::unique_lock lock(mutex_);
  over_.wait(lock, [this] { return running_ == 0; });
}

}  // namespace tandem
