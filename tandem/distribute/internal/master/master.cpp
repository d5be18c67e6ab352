#include "tandem/distribute/internal/master/master.h"

#include <atomic>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"

namespace tandem::distribute {
namespace {

constexpr const char* kGetStatus = "/tensorflow.WorkerService/GetStatus";
constexpr const char* kCreateWorkerSession = "/tensorflow.WorkerService/CreateWorkerSession";
constexpr const char* kCleanupAll = "/tensorflow.WorkerService/CleanupAll";

// Calls back when several calls have ended, with the first failure.
class Gather {
 public:
  Gather(std::size_t calls, std::function<void(const std::exception_ptr&)> done)
      : open_(calls + 1), done_(std::move(done)) {}
  void end(const std::exception_ptr& error = nullptr) {
    std::exception_ptr first;
    {
      const MutexLock lock(mutex_);
      if (error && !error_) error_ = error;
      if (--open_ > 0) return;
      first = error_;
    }
    done_(first);
  }

 private:
  Mutex mutex_;
  std::size_t open_ TANDEM_GUARDED_BY(mutex_);
  std::exception_ptr error_ TANDEM_GUARDED_BY(mutex_);
  const std::function<void(const std::exception_ptr&)> done_;
};

}  // namespace

// A session that is being made.
struct Master::Creation {
  NewSession wanted;
  proto::ConfigProto config;
  std::string handle = new_handle();
  std::vector<SessionTask> others;
  std::shared_ptr<MasterSession> session;
  Created created;
};

std::vector<SessionTask> Master::other_tasks(const std::vector<std::string>& device_filters) const {
  std::vector<SessionTask> tasks;
  for (const std::string& name : peers_.names()) {
    if (name == worker_.task()) continue;
    const DeviceSpec task = DeviceSpec::parse(name);
    bool wanted = device_filters.empty();
    for (const std::string& filter : device_filters)
      wanted = wanted || DeviceSpec::parse(filter).task_spec().matches(task);
    if (wanted) tasks.push_back({name, peers_.find(name)});
  }
  return tasks;
}

void Master::devices_of(const std::vector<SessionTask>& tasks,
                        const std::shared_ptr<Cancellation>& cancellation, const Devices& done) {
  struct Answers {
    Mutex mutex;
    std::map<std::size_t, std::vector<proto::DeviceAttributes>> by_task TANDEM_GUARDED_BY(mutex);
  };
  const auto answers = std::make_shared<Answers>();
  const auto gather =
      std::make_shared<Gather>(tasks.size(), [answers, done](const std::exception_ptr& error) {
        std::vector<proto::DeviceAttributes> devices;
        {
          const MutexLock lock(answers->mutex);
          for (auto& [task, of_task] : answers->by_task)
            devices.insert(devices.end(), of_task.begin(), of_task.end());
        }
        done(error, std::move(devices));
      });
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    tasks[t].channel->call(
        kGetStatus, {}, {.cancellation = cancellation, .wait_for_ready = true},
        [answers, gather, t, name = tasks[t].name](const Status& status, Bytes reply) {
          try {
            if (!status.ok()) std::rethrow_exception(error_of_peer(status, name, kGetStatus));
            proto::GetStatusResponse response;
            read_message(reply, response);
            const MutexLock lock(answers->mutex);
            answers->by_task[t] = std::move(response.device_attributes);
          } catch (...) {
            return gather->end(std::current_exception());
          }
          gather->end();
        });
  }
  gather->end();
}

void Master::create_session(NewSession wanted, const Created& created) {
  const auto creation = std::make_shared<Creation>();
  creation->wanted = std::move(wanted);
  creation->created = created;
  read_part(creation->wanted.config, creation->config);
  const DeviceSpec own = DeviceSpec::parse(worker_.task());
  for (const proto::JobDef& job : creation->config.cluster_def->job) {
    if (job.name == *own.job && job.tasks.contains(*own.task)) {
      throw InvalidArgumentError(
          cat("The ClusterSpec names the job and task index to be the same names that were "
              "provided when the server booted. This is currently not allowed. Job: ",
              *own.job, ", task index: ", *own.task));
    }
  }
  if (!creation->config.cluster_def->job.empty()) {
    throw UnimplementedError(
        "A session cannot bring a cluster of its own: start the servers with the whole cluster.");
  }
  creation->others = other_tasks(creation->config.device_filters);
  devices_of(creation->others, creation->wanted.cancellation,
             [this, creation](const std::exception_ptr& error,
                              const std::vector<proto::DeviceAttributes>& devices) {
               try {
                 if (error) std::rethrow_exception(error);
                 add_to_tasks(creation, devices);
               } catch (...) {
                 worker_.delete_session(creation->handle);
                 creation->created(std::current_exception(), nullptr);
               }
             });
}

void Master::add_to_tasks(const std::shared_ptr<Creation>& creation,
                          const std::vector<proto::DeviceAttributes>& devices) {
  const bool isolated = creation->config.isolate_session_state;
  MasterSession::Options options;
  options.config = creation->wanted.config;
  options.graph.soft_placement = creation->config.allow_soft_placement;
  options.graph.log_placement = creation->config.log_device_placement;
  creation->session = std::make_shared<MasterSession>(
      creation->handle, worker_, worker_.create_session(creation->handle, isolated),
      ClusterDevices(worker_.runtime(), devices, peers_.addresses()), creation->others,
      creation->wanted.graph_def, std::move(options));
  const auto gather = std::make_shared<Gather>(
      creation->others.size(), [this, creation](const std::exception_ptr& error) {
        if (error) {
          creation->session->close();
          return creation->created(error, nullptr);
        }
        {
          const MutexLock lock(mutex_);
          sessions_.emplace(creation->handle, creation->session);
        }
        creation->created(nullptr, creation->session);
      });
  const DeviceSpec own = DeviceSpec::parse(worker_.task());
  for (const SessionTask& task : creation->others) {
    const DeviceSpec spec = DeviceSpec::parse(task.name);
    proto::CreateWorkerSessionRequest request;
    request.session_handle = creation->handle;
    proto::ServerDef& server = request.server_def.make();
    server.job_name = *spec.job;
    server.task_index = *spec.task;
    server.protocol = "grpc";
    request.isolate_session_state = isolated;
    request.master_task = worker_.task();
    request.master_incarnation =
        static_cast<std::int64_t>(worker_.runtime().devices().front()->incarnation());
    task.channel->call(
        kCreateWorkerSession, write_message(request), {},
        [gather, name = task.name](const Status& status, const Bytes&) {
          gather->end(status.ok() ? nullptr : error_of_peer(status, name, kCreateWorkerSession));
        });
  }
  gather->end();
}

std::shared_ptr<MasterSession> Master::find(const std::string& handle, const char* more) const {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(handle);
  if (found != sessions_.end()) return found->second;
  throw AbortedError(cat("Session ", handle, " is not found.", more));
}

void Master::close_session(const std::string& handle) {
  std::shared_ptr<MasterSession> session = find(handle, " Possibly, this master has restarted.");
  {
    const MutexLock lock(mutex_);
    sessions_.erase(handle);
  }
  session->close();
}

std::vector<std::shared_ptr<MasterSession>> Master::sessions() const {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<MasterSession>> sessions;
  for (const auto& [handle, session] : sessions_) sessions.push_back(session);
  return sessions;
}

void Master::reset(const std::vector<std::string>& containers, const std::function<void()>& done) {
  std::map<std::string, std::shared_ptr<MasterSession>> closed;
  {
    const MutexLock lock(mutex_);
    closed.swap(sessions_);
  }
  for (const auto& [handle, session] : closed) session->close();
  worker_.reset(containers);
  const std::vector<SessionTask> others = other_tasks();
  const auto gather =
      std::make_shared<Gather>(others.size(), [done](const std::exception_ptr&) { done(); });
  proto::CleanupAllRequest request;
  request.container = containers;
  for (const SessionTask& task : others) {
    task.channel->call(kCleanupAll, write_message(request), {.timeout = std::chrono::seconds(10)},
                       [gather](const Status&, const Bytes&) { gather->end(); });
  }
  gather->end();
}

}  // namespace tandem::distribute
