#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/master/active_step.h"
#include "tandem/distribute/internal/master/cluster_devices.h"
#include "tandem/distribute/internal/master/session_graph.h"
#include "tandem/distribute/internal/master/step_plan.h"

namespace tandem::distribute {

/// A task that a session uses.
struct SessionTask {
  std::string name;
  Channel* channel = nullptr;
};

/// One client's session: its graph, the tasks that it runs on, and steps in progress. Thread-safe.
class MasterSession : public std::enable_shared_from_this<MasterSession> {
 public:
  struct Options {
    std::string config = {};  ///< the client's ConfigProto
    SessionGraph::Options graph = {};
  };
  /// `others`: the tasks besides the master's own, which have been given the session by its handle.
  MasterSession(std::string handle, Worker& worker, std::shared_ptr<WorkerSession> own,
                ClusterDevices devices, std::vector<SessionTask> others, std::string_view graph_def,
                Options options);

  const std::string& handle() const { return handle_; }
  const ClusterDevices& devices() const { return devices_; }
  const std::vector<SessionTask>& others() const { return others_; }

  /// Returns the new version. Throws AbortedError unless `expected` is the version now.
  std::int64_t extend(std::string_view graph_def, std::int64_t expected);

  /// The plan of a signature, made at first use; calls `ready` once it can be run.
  using PlanReady = std::function<void(std::exception_ptr error, std::shared_ptr<StepPlan> plan)>;
  void prepare(StepSignature signature, const PlanReady& ready);

  /// A step of a plan that is ready; it is known to `close` until it is over.
  std::shared_ptr<ActiveStep> begin(const std::shared_ptr<StepPlan>& plan,
                                    const ActiveStep::Options& options);
  void end(const std::shared_ptr<ActiveStep>& step);

  std::int64_t add_callable(std::shared_ptr<StepPlan> plan);
  /// Throw InvalidArgumentError if there is none.
  std::shared_ptr<StepPlan> callable(std::int64_t handle) const;
  void release_callable(std::int64_t handle);

  /// A partial run between its calls.
  struct PartialRun {
    std::shared_ptr<ActiveStep> step;
    Mutex mutex;
    std::set<std::string> unfed TANDEM_GUARDED_BY(mutex);
    std::set<std::string> unfetched TANDEM_GUARDED_BY(mutex);
    std::optional<ActiveStep::Outcome> outcome TANDEM_GUARDED_BY(mutex);
    std::function<void(const ActiveStep::Outcome&)> last TANDEM_GUARDED_BY(mutex);
  };
  std::string add_partial_run(const std::shared_ptr<PartialRun>& run);
  std::shared_ptr<PartialRun> partial_run(const std::string& handle) const;
  void remove_partial_run(const std::string& handle);

  /// Ends steps in progress, and the session in all tasks. Does nothing the second time.
  void close();
  std::size_t num_steps() const;

 private:
  static constexpr std::size_t kMaxPlans = 256;
  void check_open() const TANDEM_REQUIRES(mutex_);

  const std::string handle_;
  Worker& worker_;
  const std::shared_ptr<WorkerSession> own_;
  const ClusterDevices devices_;
  const std::vector<SessionTask> others_;
  const Options options_;
  mutable Mutex mutex_;
  std::shared_ptr<const SessionGraph> graph_ TANDEM_GUARDED_BY(mutex_);
  // Plans that were used last come first.
  std::list<std::pair<std::string, std::shared_ptr<StepPlan>>> plans_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, decltype(plans_)::iterator> plan_of_ TANDEM_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<ActiveStep>> steps_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::int64_t, std::shared_ptr<StepPlan>> callables_ TANDEM_GUARDED_BY(mutex_);
  std::int64_t next_callable_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_ TANDEM_GUARDED_BY(mutex_);
  std::int64_t num_step_graphs_ TANDEM_GUARDED_BY(mutex_) = 0;
  std::int64_t next_partial_run_ TANDEM_GUARDED_BY(mutex_) = 0;
  bool closed_ TANDEM_GUARDED_BY(mutex_) = false;
};

}  // namespace tandem::distribute
