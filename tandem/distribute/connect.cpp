#include "tandem/distribute/connect.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/remote/eager_client.h"
#include "tandem/distribute/internal/rpc/task_network.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/distribute/internal/wire/request_ids.h"

namespace tandem::distribute {
namespace {

constexpr const char* kCreateContext = "/tensorflow.eager.EagerService/CreateContext";
constexpr const char* kGetStatus = "/tensorflow.WorkerService/GetStatus";

// Names the task whose answer is missing.
Bytes ask(Channel& channel, const std::string& task, const char* method, Bytes request,
          std::chrono::milliseconds timeout) {
  try {
    return blocking_call(channel, method, std::move(request),
                         {.timeout = timeout, .wait_for_ready = true});
  } catch (const Error& error) {
    throw_error(error.code(), cat(task, ": ", error.what()));
  }
}

void check(const ClusterResolver& resolver, const Connection::Options& options) {
  if (resolver.cluster().empty())
    throw InvalidArgumentError("The cluster to connect to has no tasks.");
  const auto check_positive = [](const char* name, auto value, const char* unit) {
    if (value > 0) return;
    throw InvalidArgumentError(
        cat("The ", name, " of a connection must be positive, but is ", value, " ", unit, "."));
  };
  check_positive("timeout", options.timeout.count(), "ms");
  check_positive("keep_alive", options.keep_alive.count(), "s");
}

}  // namespace

struct Connection::Impl {
  Impl(const ClusterResolver& resolver, const Options& options)
      : network({options.security.certificate, options.security.key, options.security.authority}) {
    if (RemoteCalls::active()) {
      throw FailedPreconditionError(
          "This process is connected to a cluster already. Destroy that Connection first.");
    }
    // Each task with what it is asked first.
    struct Task {
      std::string name;
      std::shared_ptr<Channel> channel;
      proto::CreateContextRequest request;
      std::vector<proto::DeviceAttributes> devices;
    };
    std::vector<Task> found;
    std::map<std::string, std::string> addresses;
    proto::ClusterDef cluster;
    for (const auto& [job, tasks] : resolver.cluster().jobs()) {
      proto::JobDef& def = cluster.job.emplace_back();
      def.name = job;
      for (const auto& [number, address] : tasks) {
        def.tasks[number] = address;
        Task& task = found.emplace_back();
        task.name = task_name(job, number);
        task.channel = network.channel(address);
        addresses.emplace(task.name, address);
        task.request.server_def.make().job_name = job;
        task.request.server_def.make().task_index = number;
      }
    }
    std::vector<proto::DeviceAttributes> all;
    for (Task& task : found) {
      Bytes reply = ask(*task.channel, task.name, kGetStatus, {}, options.timeout);
      proto::GetStatusResponse response;
      read_message(reply, response);
      task.devices = response.device_attributes;
      all.insert(all.end(), task.devices.begin(), task.devices.end());
    }
    const auto context = static_cast<std::uint64_t>(new_step_id());
    std::vector<std::shared_ptr<RemoteTask>> tasks;
    for (Task& task : found) {
      task.request.server_def.make().cluster.make() = cluster;
      task.request.keep_alive_secs = options.keep_alive.count();
      task.request.cluster_device_attributes = all;
      task.request.context_id = static_cast<io::proto::Fixed64>(context);
      task.request.lazy_copy_remote_function_inputs = true;
      ask(*task.channel, task.name, kCreateContext, write_message(task.request), options.timeout);
      tasks.push_back(std::make_shared<RemoteTask>(task.name, task.channel, context, task.devices));
    }
    client = std::make_shared<EagerClient>(std::move(tasks), std::move(addresses));
    RemoteCalls::set(client);
    client->keep_alive(options.keep_alive / 3);
  }

  ~Impl() {
    RemoteCalls::set(nullptr);
    client->close();
  }

  TaskNetwork network;
  std::shared_ptr<EagerClient> client;
};

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

std::vector<std::string> Connection::devices() const {
  std::vector<std::string> names;
  for (const auto& task : impl_->client->tasks()) {
    for (const proto::DeviceAttributes& device : task->devices()) names.push_back(device.name);
  }
  return names;
}

void Connection::synchronize() const {
  for (const auto& task : impl_->client->tasks()) task->wait();
}

std::unique_ptr<Connection> connect(const ClusterResolver& resolver,
                                    const Connection::Options& options) {
  check(resolver, options);
  return std::unique_ptr<Connection>(
      new Connection(std::make_unique<Connection::Impl>(resolver, options)));
}
std::unique_ptr<Connection> connect(const ClusterResolver& resolver) {
  return connect(resolver, Connection::Options{});
}

}  // namespace tandem::distribute
