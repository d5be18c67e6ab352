#include "tandem/distribute/internal/master/step_plan.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/graph_message.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/worker/worker_rendezvous.h"

namespace tandem::distribute {

namespace {
constexpr const char* kRegisterGraph = "/tensorflow.WorkerService/RegisterGraph";
}

StepPlan::StepPlan(StepSignature signature, StepGraph graph, const std::string& own_task,
                   const std::function<Channel*(const std::string& task)>& channel_of)
    : signature_(std::move(signature)),
      feed_dtypes_(std::move(graph.feed_dtypes)),
      needed_feeds_(std::move(graph.needed_feeds)) {
  for (GraphPart& part : graph.parts) {
    if (part.name == own_task) {
      own_ = std::move(part);
      continue;
    }
    Channel* channel = channel_of(part.name);
    if (!channel) {
      throw InternalError(
          cat("A part of the graph is for ", part.name, ", which is no task of the session."));
    }
    remotes_.push_back({part.name, channel, export_part(*part.function), {}});
  }
}

void StepPlan::make_ready(const std::string& session, std::string_view config, Ready ready) {
  {
    MutexLock lock(mutex_);
    if (state_ == State::kNew && remotes_.empty()) state_ = State::kReady;
    if (state_ == State::kReady || state_ == State::kFailed) {
      const std::exception_ptr error = error_;
      lock.unlock();
      return ready(error);
    }
    waiting_.push_back(std::move(ready));
    if (state_ == State::kRegistering) return;
    state_ = State::kRegistering;
    open_ = remotes_.size();
  }
  for (std::size_t r = 0; r < remotes_.size(); ++r) {
    proto::RegisterGraphRequest request;
    request.session_handle = session;
    request.graph_def = remotes_[r].graph_def;
    request.create_worker_session_called = true;
    request.config_proto = config;
    remotes_[r].channel->call(
        kRegisterGraph, write_message(request), {},
        [self = shared_from_this(), r](const Status& status, Bytes reply) {
          try {
            if (!status.ok())
              std::rethrow_exception(error_of_peer(status, self->remotes_[r].task, kRegisterGraph));
            proto::RegisterGraphResponse response;
            read_message(reply, response);
            self->registered(r, response.graph_handle);
            self->end(nullptr);
          } catch (...) {
            self->end(std::current_exception());
          }
        });
  }
}

void StepPlan::registered(std::size_t remote, const std::string& handle) {
  remotes_[remote].handle = handle;  // nothing reads it before all have ended
  if (!signature_.trace) remotes_[remote].graph_def.clear();
}

void StepPlan::end(const std::exception_ptr& error) {
  std::vector<Ready> waiting;
  std::exception_ptr first;
  {
    const MutexLock lock(mutex_);
    if (error && !error_) error_ = error;
    if (--open_ > 0) return;
    state_ = error_ ? State::kFailed : State::kReady;
    first = error_;
    waiting = std::move(waiting_);
  }
  for (const Ready& ready : waiting) ready(first);
}

}  // namespace tandem::distribute
