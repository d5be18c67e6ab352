#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/distribute/internal/master/master_session.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// A client's call that runs a step: RunStep, one call of a partial run, or RunCallable. `start`
/// returns at once; the answer comes when the step is over.
class RunCall : public std::enable_shared_from_this<RunCall> {
 public:
  RunCall(std::shared_ptr<MasterSession> session, const CallContext& context, ReplyDone done)
      : session_(std::move(session)), context_(context), done_(std::move(done)) {}

  /// Answers as RunStepResponse; errors go into it if the request asks for that.
  void start(Bytes request, proto::RunStepRequest message);
  void start_callable(Bytes request, const proto::RunCallableRequest& message);

 private:
  void run(const std::shared_ptr<StepPlan>& plan, std::vector<Array> feeds,
           const proto::RunOptions& options);
  void continue_partial();
  void watch_caller(const std::shared_ptr<ActiveStep>& step);
  void fail(const std::exception_ptr& error);
  void answer(const std::vector<std::string>& names, const std::vector<Array>& values,
              const proto::RunMetadata* metadata);

  const std::shared_ptr<MasterSession> session_;
  const CallContext context_;
  const ReplyDone done_;
  Bytes request_;
  proto::RunStepRequest message_;  // of a callable: empty
  bool callable_ = false;
  CancellationCallback caller_gone_;
};

}  // namespace tandem::distribute
