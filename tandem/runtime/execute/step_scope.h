#pragma once

#include <exception>
#include <memory>

#include "tandem/core/cancellation.h"
#include "tandem/graph/local_collectives.h"
#include "tandem/graph/step_context.h"

namespace tandem {

class StepRecorder;
struct ThreadContext;

/// What an eager call of the thread, which is no step, has of a step's context. Good as long as the
/// thread's context stays as it is.
StepContext eager_step(const ThreadContext& thread);

/// One step of the calling thread, under what its scopes say (cancellation, deadline, recording).
/// It ends when this is destroyed, after all of its work has. Who runs the parts of one step, on
/// several threads say, makes one scope for all of them and gives them its `step()`; what of that
/// is to be another one (a rendezvous, collectives) is set first:
///
///     StepScope scope(thread_context().cancellation);
///     scope.step().rendezvous = &rendezvous;
///     … FunctionExecutor::run_in(scope.step(), part, args, device) …
class StepScope {
 public:
  /// `cancellation`, which may be null, stops the step.
  explicit StepScope(std::shared_ptr<const Cancellation> cancellation);
  /// A scope whose thread's context the caller has at hand.
  StepScope(ThreadContext& thread, std::shared_ptr<const Cancellation> cancellation);
  ~StepScope() = default;
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

  const StepContext& step() const { return step_; }
  StepContext& step() { return step_; }
  /// Throws the exception being handled, how the step has ended: as DeadlineExceededError, naming
  /// the nodes that had not ended, if that is because its deadline has passed.
  [[noreturn]] void rethrow() const;

 private:
  const std::shared_ptr<const Cancellation> cancellation_;
  const std::shared_ptr<StepRecorder> recorder_;
  const std::shared_ptr<NodeStates> session_;
  StepContainer container_;
  LocalCollectives collectives_;
  UnfinishedNodes unfinished_;
  StepContext step_;
};

}  // namespace tandem
