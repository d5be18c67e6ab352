#include "tandem/runtime/internal/running_calls.h"

namespace tandem {
namespace {

thread_local int t_calls = 0;  // of any runtime, that this thread is inside of

}  // namespace

RunningCalls::Scope::Scope(RunningCalls& calls) : calls_(calls) {
  std::lock_guard lock(calls_.mutex_);
  ++calls_.running_;
  ++t_calls;
}

RunningCalls::Scope::~Scope() {
  std::lock_guard lock(calls_.mutex_);
  --t_calls;
  if (--calls_.running_ == 0) calls_.over_.notify_all();
}

void RunningCalls::end() {
  closes_->cancel();
  if (t_calls != 0) return;
  std::unique_lock lock(mutex_);
  over_.wait(lock, [this] { return running_ == 0; });
}

}  // namespace tandem
