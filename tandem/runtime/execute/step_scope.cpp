#include "tandem/runtime/execute/step_scope.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

// A thread takes numbers by the block: an atomic addition costs a call as much as fifty
// instructions.
std::int64_t next_step_id() {
  constexpr std::int64_t kBlock = 1024;
  static constinit std::atomic<std::int64_t> blocks{0};
  static constinit thread_local std::int64_t next = 0;
  if (next % kBlock == 0) next = kBlock * blocks.fetch_add(1, std::memory_order_relaxed) + 1;
  return next++;
}

}  // namespace

StepContext eager_step(const ThreadContext& thread) {
  StepContext step;
  step.cancellation = thread.cancellation.get();
  step.deadline = thread.deadline;
  return step;
}

StepScope::StepScope(std::shared_ptr<const Cancellation> cancellation)
    : StepScope(thread_context(), std::move(cancellation)) {}

StepScope::StepScope(ThreadContext& thread, std::shared_ptr<const Cancellation> cancellation)
    : cancellation_(std::move(cancellation)),
      recorder_(StepRecorder::active()),
      session_(std::move(thread.session)) {
  step_.id = next_step_id();
  step_.cancellation = cancellation_.get();
  step_.deadline = thread.deadline;
  step_.container = &container_;
  step_.collectives = &collectives_;
  step_.recorder = recorder_.get();
  step_.session = session_.get();
  step_.unfinished = &unfinished_;
}

void StepScope::rethrow() const {
  const std::exception_ptr error = std::current_exception();
  const Code code = code_of(error);
  const bool stopped = code == Code::kCancelled || code == Code::kDeadlineExceeded;
  if (!stopped || !cancellation_ || cancellation_->reason() != Code::kDeadlineExceeded)
    std::rethrow_exception(error);
  std::string message = "The step's deadline has passed.";
  if (const std::string names = unfinished_.to_string(); !names.empty())
    message += cat(" Still running: ", names, ".");
  throw DeadlineExceededError(cat(message, "\n", message_of(error)));
}

}  // namespace tandem
