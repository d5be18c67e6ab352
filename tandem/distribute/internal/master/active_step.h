#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tandem/core/cancellation.h"
#include "tandem/core/thread_annotations.h"
#include "tandem/core/timer.h"
#include "tandem/distribute/internal/master/step_plan.h"
#include "tandem/distribute/internal/worker/worker.h"

namespace tandem::distribute {

/// One step in progress: its parts run side by side, the master's own in this process and the
/// others' by RunGraph. The first failure ends the others. A task that does not answer any more,
/// though its connection may still be there, ends a step as well. Thread-safe.
class ActiveStep : public std::enable_shared_from_this<ActiveStep> {
 public:
  struct Options {
    std::optional<std::chrono::nanoseconds> timeout = {};
    bool record = false;
  };
  struct Outcome {
    std::exception_ptr error = nullptr;
    std::vector<Array> results = {};
    proto::StepStats stats = {};
  };
  using Done = std::function<void(Outcome outcome)>;

  /// `worker`, the master's own, must outlive this.
  ActiveStep(Worker& worker, std::shared_ptr<WorkerSession> session,
             std::shared_ptr<const StepPlan> plan, const Options& options);
  ~ActiveStep();
  ActiveStep(const ActiveStep&) = delete;
  ActiveStep& operator=(const ActiveStep&) = delete;

  std::int64_t id() const { return step_->id; }
  const StepPlan& plan() const { return *plan_; }
  /// Where a partial run meets its client.
  LocalRendezvous& rendezvous() { return step_->rendezvous->local(); }
  const Cancellation& cancellation() const { return *step_->cancellation; }

  /// Begins the parts; calls `done` once all have ended.
  void start(std::vector<Array> args, Done done);
  /// Ends the step with this error.
  void abort(const std::exception_ptr& error);

 private:
  void run_remote(const StepPlan::Remote& remote);
  void run_own(std::vector<Array> args);
  void end_part(const std::exception_ptr& error, bool is_consequence,
                const proto::StepStats& stats);
  void finish();
  void watch_peers();
  void ask_peers();

  Worker& worker_;
  const std::shared_ptr<WorkerSession> session_;
  const std::shared_ptr<const StepPlan> plan_;
  const Options options_;
  const std::shared_ptr<WorkerStep> step_;
  const std::shared_ptr<Cancellation> remote_calls_ = std::make_shared<Cancellation>();
  Timer timer_;
  Done done_;
  Mutex mutex_;
  Timer heartbeat_ TANDEM_GUARDED_BY(mutex_);
  std::size_t open_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::exception_ptr aborted_ TANDEM_GUARDED_BY(mutex_);
  std::exception_ptr origin_ TANDEM_GUARDED_BY(mutex_);       // the first failure, and the first
  std::exception_ptr consequence_ TANDEM_GUARDED_BY(mutex_);  // that began in another part
  Outcome outcome_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
