#include "tandem/runtime/execute/running_calls.h"

namespace tandem {

constinit thread_local const RunningCalls::Scope* RunningCalls::Scope::t_innermost = nullptr;

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

bool RunningCalls::inside() const {
  for (const Scope* scope = Scope::t_innermost; scope; scope = scope->outer_) {
    if (&scope->calls_ == this) return true;
  }
  return false;
}

void RunningCalls::notify() {
  std::lock_guard lock(mutex_);
  over_.notify_all();
}

void RunningCalls::end() {
  closes_->cancel();
  if (inside()) return;
  std::unique_lock lock(mutex_);
  over_.wait(lock, [this] { return running_.load(std::memory_order_seq_cst) == 0; });
}

}  // namespace tandem
