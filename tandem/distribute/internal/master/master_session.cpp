#include "tandem/distribute/internal/master/master_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"

namespace tandem::distribute {

MasterSession::MasterSession(std::string handle, Worker& worker, std::shared_ptr<WorkerSession> own,
                             ClusterDevices devices, std::vector<SessionTask> others,
                             std::string_view graph_def, Options options)
    : handle_(std::move(handle)),
      worker_(worker),
      own_(std::move(own)),
      devices_(std::move(devices)),
      others_(std::move(others)),
      options_(std::move(options)),
      graph_(std::make_shared<const SessionGraph>(graph_def, own_->runtime(), devices_,
                                                  options_.graph)) {}

void MasterSession::check_open() const {
  if (closed_) throw AbortedError(cat("Session ", handle_, " is not found."));
}

std::int64_t MasterSession::extend(std::string_view graph_def, std::int64_t expected) {
  std::shared_ptr<const SessionGraph> before;
  const auto check_version = [&](std::int64_t version) {
    if (version != expected) {
      throw AbortedError(
          cat("Current version is ", version, " but caller expected ", expected, "."));
    }
  };
  {
    const MutexLock lock(mutex_);
    check_open();
    before = graph_;
  }
  check_version(before->version());
  auto extended = before->extend(graph_def, own_->runtime(), devices_, options_.graph);
  const MutexLock lock(mutex_);
  check_version(graph_->version());  // another client may have extended it meanwhile
  graph_ = std::move(extended);
  return graph_->version();
}

void MasterSession::prepare(StepSignature signature, const PlanReady& ready) {
  const std::string key = signature.key();
  std::shared_ptr<StepPlan> plan;
  std::shared_ptr<const SessionGraph> graph;
  std::int64_t number = 0;
  {
    const MutexLock lock(mutex_);
    check_open();
    number = ++num_step_graphs_;
    if (const auto found = plan_of_.find(key); found != plan_of_.end()) {
      plans_.splice(plans_.begin(), plans_, found->second);
      plan = found->second->second;
    }
    graph = graph_;
  }
  if (!plan) {
    StepGraph step = make_step_graph(*graph, signature, own_->runtime(), devices_, number);
    plan = std::make_shared<StepPlan>(
        std::move(signature), std::move(step), worker_.task(), [this](const std::string& task) {
          const auto found = std::find_if(others_.begin(), others_.end(),
                                          [&](const SessionTask& t) { return t.name == task; });
          return found == others_.end() ? nullptr : found->channel;
        });
    const MutexLock lock(mutex_);
    if (const auto found = plan_of_.find(key); found != plan_of_.end()) {
      plan = found->second->second;  // another call was faster
    } else {
      plans_.emplace_front(key, plan);
      plan_of_.emplace(key, plans_.begin());
      if (plans_.size() > kMaxPlans) {
        plan_of_.erase(plans_.back().first);
        plans_.pop_back();
      }
    }
  }
  plan->make_ready(handle_, options_.config,
                   [self = shared_from_this(), plan, key, ready](const std::exception_ptr& error) {
                     if (error) {  // the next call tries again
                       const MutexLock lock(self->mutex_);
                       const auto found = self->plan_of_.find(key);
                       if (found != self->plan_of_.end() && found->second->second == plan) {
                         self->plans_.erase(found->second);
                         self->plan_of_.erase(found);
                       }
                     }
                     ready(error, plan);
                   });
}

std::shared_ptr<ActiveStep> MasterSession::begin(const std::shared_ptr<StepPlan>& plan,
                                                 const ActiveStep::Options& options) {
  const MutexLock lock(mutex_);
  check_open();
  auto step = std::make_shared<ActiveStep>(worker_, own_, plan, options);
  steps_.insert(step);
  return step;
}

void MasterSession::end(const std::shared_ptr<ActiveStep>& step) {
  const MutexLock lock(mutex_);
  steps_.erase(step);
}

std::int64_t MasterSession::add_callable(std::shared_ptr<StepPlan> plan) {
  const MutexLock lock(mutex_);
  check_open();
  callables_.emplace(next_callable_, std::move(plan));
  return next_callable_++;
}

std::shared_ptr<StepPlan> MasterSession::callable(std::int64_t handle) const {
  const MutexLock lock(mutex_);
  const auto found = callables_.find(handle);
  if (found == callables_.end())
    throw InvalidArgumentError(cat("No such callable handle: ", handle));
  return found->second;
}

void MasterSession::release_callable(std::int64_t handle) {
  const MutexLock lock(mutex_);
  callables_.erase(handle);
}

std::string MasterSession::add_partial_run(const std::shared_ptr<PartialRun>& run) {
  const MutexLock lock(mutex_);
  check_open();
  std::string handle = std::to_string(next_partial_run_++);
  partial_runs_.emplace(handle, run);
  return handle;
}

std::shared_ptr<MasterSession::PartialRun> MasterSession::partial_run(
    const std::string& handle) const {
  const MutexLock lock(mutex_);
  const auto found = partial_runs_.find(handle);
  if (found == partial_runs_.end())
    throw InvalidArgumentError("Must run PartialRunSetup before performing partial runs.");
  return found->second;
}

void MasterSession::remove_partial_run(const std::string& handle) {
  const MutexLock lock(mutex_);
  partial_runs_.erase(handle);
}

std::size_t MasterSession::num_steps() const {
  const MutexLock lock(mutex_);
  return steps_.size();
}

void MasterSession::close() {
  std::set<std::shared_ptr<ActiveStep>> steps;
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    steps = steps_;
    partial_runs_.clear();
    callables_.clear();
  }
  const auto error = std::make_exception_ptr(
      CancelledError("Step was cancelled by an explicit call to `Session::Close()`."));
  for (const auto& step : steps) step->abort(error);
  proto::DeleteWorkerSessionRequest request;
  request.session_handle = handle_;
  for (const SessionTask& task : others_) {
    task.channel->call("/tensorflow.WorkerService/DeleteWorkerSession", write_message(request),
                       {.timeout = std::chrono::seconds(10)}, [](const Status&, const Bytes&) {});
  }
  worker_.delete_session(handle_);
}

}  // namespace tandem::distribute
