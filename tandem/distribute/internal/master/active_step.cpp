#include "tandem/distribute/internal/master/active_step.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/error_text.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"

namespace tandem::distribute {
namespace {

constexpr const char* kRunGraph = "/tensorflow.WorkerService/RunGraph";
constexpr const char* kGetStatus = "/tensorflow.WorkerService/GetStatus";
constexpr const char* kCleanupGraph = "/tensorflow.WorkerService/CleanupGraph";

}  // namespace

ActiveStep::ActiveStep(Worker& worker, std::shared_ptr<WorkerSession> session,
                       std::shared_ptr<const StepPlan> plan, const Options& options)
    : worker_(worker),
      session_(std::move(session)),
      plan_(std::move(plan)),
      options_(options),
      step_(worker.steps().find_or_create(new_step_id())) {}

ActiveStep::~ActiveStep() { worker_.steps().clean_up(step_->id); }

void ActiveStep::start(std::vector<Array> args, Done done) {
  done_ = std::move(done);
  const bool has_own = plan_->own().function != nullptr;
  {
    const MutexLock lock(mutex_);
    open_ = plan_->remotes().size() + (has_own ? 1 : 0) + 1;
  }
  if (options_.timeout) {
    timer_ = Timer(std::chrono::steady_clock::now() + *options_.timeout, [weak = weak_from_this()] {
      if (const auto self = weak.lock())
        self->abort(std::make_exception_ptr(DeadlineExceededError("Deadline Exceeded")));
    });
  }
  if (!plan_->remotes().empty()) watch_peers();
  for (const StepPlan::Remote& remote : plan_->remotes()) run_remote(remote);
  if (has_own) run_own(std::move(args));
  end_part(nullptr, false, {});
}

// A step that has not ended after a quarter of the time asks; the rest is for the answer.
void ActiveStep::watch_peers() {
  const MutexLock lock(mutex_);
  if (open_ == 0) return;
  heartbeat_ = Timer(std::chrono::steady_clock::now() + worker_.peer_timeout() / 4,
                     [weak = weak_from_this()] {
                       if (const auto self = weak.lock()) self->ask_peers();
                     });
}

void ActiveStep::ask_peers() {
  for (const StepPlan::Remote& remote : plan_->remotes()) {
    remote.channel->call(
        kGetStatus, {}, {.timeout = worker_.peer_timeout() * 3 / 4, .cancellation = remote_calls_},
        [weak = weak_from_this(), task = remote.task](const Status& status, const Bytes&) {
          const auto self = weak.lock();
          if (!self ||
              (status.code != Code::kUnavailable && status.code != Code::kDeadlineExceeded))
            return;
          self->abort(std::make_exception_ptr(UnavailableError(
              cat(task, " does not answer (for ", self->worker_.peer_timeout().count(),
                  " ms, or it cannot be reached): ", status.message))));
        });
  }
  watch_peers();
}

void ActiveStep::run_remote(const StepPlan::Remote& remote) {
  proto::RunGraphRequest request;
  request.graph_handle = remote.handle;
  request.step_id = step_->id;
  request.exec_opts.make().record_timeline = options_.record;
  request.session_handle = session_->handle();
  request.store_errors_in_response_body = true;
  request.create_worker_session_called = true;
  request.request_id = new_request_id();
  remote.channel->call(
      kRunGraph, write_message(request), {.cancellation = remote_calls_},
      [self = shared_from_this(), &remote](const Status& status, Bytes reply) {
        if (!status.ok()) {
          return self->end_part(error_of_peer(status, remote.task, kRunGraph), false, {});
        }
        proto::RunGraphReply message;
        std::exception_ptr error;
        try {
          read_message(reply, message);
          if (message.status_code != 0) {
            throw_error(static_cast<Code>(message.status_code), message.status_error_message);
          }
        } catch (...) {
          error = error_from_task(std::current_exception(), remote.task);
        }
        self->end_part(error, began_elsewhere(message.status_error_message), *message.step_stats);
      });
}

void ActiveStep::run_own(std::vector<Array> args) {
  const GraphPart& part = plan_->own();
  std::vector<Array> taken;
  for (const int a : part.args) taken.push_back(args[static_cast<std::size_t>(a)]);
  worker_.run(
      session_, part.function, step_, std::move(taken), options_.record,
      [self = shared_from_this()](Worker::Outcome outcome) {
        if (!outcome.error) {
          const GraphPart& own = self->plan_->own();
          const MutexLock lock(self->mutex_);
          auto& results = self->outcome_.results;
          results.resize(self->plan_->signature().fetches.size());
          for (std::size_t r = 0; r < own.results.size(); ++r)
            results[static_cast<std::size_t>(own.results[r])] = std::move(outcome.results[r]);
        }
        const bool is_consequence = outcome.error && began_elsewhere(message_of(outcome.error));
        self->end_part(
            outcome.error ? error_from_task(outcome.error, self->worker_.task()) : nullptr,
            is_consequence, outcome.stats);
      });
}

void ActiveStep::abort(const std::exception_ptr& error) {
  {
    const MutexLock lock(mutex_);
    if (!aborted_) aborted_ = error;
  }
  step_->rendezvous->start_abort(error);
  remote_calls_->cancel();
}

// A part that was ended because another one failed says nothing new, and neither does one that
// waited for a value of it: the others go on until the failure itself is known.
void ActiveStep::end_part(const std::exception_ptr& error, bool is_consequence,
                          const proto::StepStats& stats) {
  bool is_origin = false, was_last = false;
  {
    const MutexLock lock(mutex_);
    if (error && is_consequence && !consequence_) consequence_ = error;
    if (error && !is_consequence && !origin_ && !aborted_) {
      origin_ = error;
      is_origin = true;
    }
    for (const proto::DeviceStepStats& device : stats.dev_stats)
      outcome_.stats.dev_stats.push_back(device);
    was_last = --open_ == 0;
  }
  if (is_origin) {
    step_->rendezvous->start_abort(error);
    remote_calls_->cancel();
  }
  if (was_last) finish();
}

void ActiveStep::finish() {
  timer_ = Timer();
  Outcome outcome;
  {
    const MutexLock lock(mutex_);
    heartbeat_ = Timer();
    outcome = std::move(outcome_);
    outcome.error = aborted_ ? aborted_ : origin_ ? origin_ : consequence_;
  }
  proto::CleanupGraphRequest request;
  request.step_id = step_->id;
  for (const StepPlan::Remote& remote : plan_->remotes()) {
    remote.channel->call(kCleanupGraph, write_message(request), {},
                         [](const Status&, const Bytes&) {});
  }
  // The client of a partial run may not have taken all values yet.
  if (!plan_->signature().partial || outcome.error) worker_.steps().clean_up(step_->id);
  const Done done = std::move(done_);
  done(std::move(outcome));
}

}  // namespace tandem::distribute
