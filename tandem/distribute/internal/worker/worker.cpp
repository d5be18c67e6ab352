#include "tandem/distribute/internal/worker/worker.h"

#include <thread>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/worker/step_stats.h"
#include "tandem/graph/local_collectives.h"
#include "tandem/graph/step_context.h"
#include "tandem/runtime/execute/executable.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::distribute {

// One run of a graph: all that has to stay until it is over.
class Worker::Run : public std::enable_shared_from_this<Worker::Run> {
 public:
  Run(Worker& worker, std::shared_ptr<WorkerSession> session, FunctionRef function,
      std::shared_ptr<WorkerStep> step, Done done)
      : worker_(worker),
        session_(std::move(session)),
        function_(std::move(function)),
        step_(std::move(step)),
        done_(std::move(done)) {
    within_.id = step_->id;
    within_.cancellation = step_->cancellation.get();
    // A failure aborts these, which other ops of a step that outlives failures must not see. Their
    // sends and receives are no kernels, and members of a group are in one function.
    within_.collectives = &collectives_;
    if (!step_->outlives_failures) {
      within_.rendezvous = step_->rendezvous.get();
      within_.collectives = &step_->collectives;
    }
    within_.container = &step_->container;
    within_.session = &session_->states();
    within_.unfinished = &unfinished_;
    worker_.running_.fetch_add(1);
  }

  void start(std::vector<Array> args) {
    try {
      step_->cancellation->check();
      const ThreadContextScope scope(context());
      recorder_ = StepRecorder::active();  // the profiler's
      within_.recorder = recorder_.get();
      const Device& device = session_->runtime().default_device();
      FunctionExecutor::check(*function_, args);
      plan_ = FunctionExecutor::prepare(*function_, args, device, &within_);
      plan_->run_async(
          std::move(args), within_,
          [self = shared_from_this()](const std::exception_ptr& error, std::vector<Array> results) {
            self->end({error, std::move(results), {}});
          });
    } catch (...) {
      end({std::current_exception(), {}, {}});
    }
  }

  // A recording belongs to a thread, so one waits.
  void start_recorded(std::vector<Array> args) {
    std::thread([self = shared_from_this(), args = std::move(args)]() mutable {
      Outcome outcome;
      try {
        const ThreadContextScope scope(self->context());
        profiler::Recording recording;
        const auto recorder = thread_context().recorder;
        self->within_.recorder = recorder.get();
        const std::int64_t started = microseconds_now();
        try {
          outcome.results =
              FunctionExecutor::run_in(self->within_, *self->function_, std::move(args),
                                       self->session_->runtime().default_device());
        } catch (...) {
          outcome.error = std::current_exception();
        }
        outcome.stats = step_stats(recording.stop(), *self->function_, started);
      } catch (...) {
        outcome.error = std::current_exception();
      }
      self->end(std::move(outcome));
    }).detach();
  }

 private:
  ThreadContext context() const {
    ThreadContext context;
    context.runtime = session_->runtime().share();
    context.cancellation = step_->cancellation;
    return context;
  }

  void end(Outcome outcome) {
    if (outcome.error) {
      // A step that was ended from elsewhere has that as its reason.
      if (const std::exception_ptr first = step_->rendezvous->local().error();
          first && code_of(outcome.error) == Code::kCancelled)
        outcome.error = first;
      if (!step_->outlives_failures) step_->rendezvous->start_abort(outcome.error);
    }
    const Done done = std::move(done_);
    worker_.running_.fetch_sub(1);
    done(std::move(outcome));
  }

  Worker& worker_;
  const std::shared_ptr<WorkerSession> session_;
  const FunctionRef function_;
  const std::shared_ptr<WorkerStep> step_;
  Done done_;
  UnfinishedNodes unfinished_;
  LocalCollectives collectives_;  // of a step that outlives failures
  StepContext within_;
  std::shared_ptr<StepRecorder> recorder_;  // null: nothing records
  std::shared_ptr<Executable> plan_;
};

Worker::Worker(Runtime& runtime, std::string task, const Peers& peers)
    : runtime_(runtime), task_(std::move(task)), steps_(task_, peers) {
  static_cast<void>(create_session("", false));
}

Worker::~Worker() = default;

std::vector<proto::DeviceAttributes> Worker::devices() const {
  std::vector<proto::DeviceAttributes> devices;
  for (const auto& device : runtime_.devices()) {
    proto::DeviceAttributes attributes;
    attributes.name = device->name();
    attributes.device_type = device->type();
    const std::size_t limit = device->properties().memory_bytes;
    attributes.memory_limit = limit != 0 ? static_cast<std::int64_t>(limit) : 256 << 20;
    attributes.locality.make();
    attributes.incarnation = static_cast<io::proto::Fixed64>(device->incarnation());
    attributes.physical_device_desc = device->properties().description;
    attributes.xla_global_id = -1;
    devices.push_back(std::move(attributes));
  }
  return devices;
}

std::shared_ptr<WorkerSession> Worker::create_session(const std::string& handle, bool isolated) {
  const MutexLock lock(mutex_);
  std::shared_ptr<WorkerSession>& session = sessions_[handle];
  if (!session) session = std::make_shared<WorkerSession>(handle, runtime_, isolated);
  return session;
}

std::shared_ptr<WorkerSession> Worker::find_session(const std::string& handle) const {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(handle);
  return found == sessions_.end() ? nullptr : found->second;
}

void Worker::delete_session(const std::string& handle) {
  std::shared_ptr<WorkerSession> removed;
  {
    const MutexLock lock(mutex_);
    const auto found = sessions_.find(handle);
    if (found == sessions_.end() || handle.empty()) return;
    removed = std::move(found->second);
    sessions_.erase(found);
  }
  removed->close();
}

std::vector<std::string> Worker::sessions() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> handles;
  for (const auto& [handle, session] : sessions_) {
    if (!handle.empty()) handles.push_back(handle);
  }
  return handles;
}

void Worker::run(const std::shared_ptr<WorkerSession>& session, FunctionRef function,
                 std::shared_ptr<WorkerStep> step, std::vector<Array> args, bool record,
                 Done done) {
  const auto run =
      std::make_shared<Run>(*this, session, std::move(function), std::move(step), std::move(done));
  if (record) {
    run->start_recorded(std::move(args));
  } else {
    run->start(std::move(args));
  }
}

void Worker::reset(const std::vector<std::string>& containers) {
  for (const auto& device : runtime_.devices()) {
    ResourceManager& resources = runtime_.resources(*device);
    if (containers.empty()) resources.clear(kDefaultContainer);
    for (const std::string& container : containers)
      resources.clear(container.empty() ? kDefaultContainer : container);
  }
}

}  // namespace tandem::distribute
