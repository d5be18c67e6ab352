#include "tandem/distribute/cluster_status.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/rpc/grpc/grpc_network.h"
#include "tandem/distribute/internal/server/status_service.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/wire/messages.h"

namespace tandem::distribute {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);

TaskStatus ask(Network& network, const std::string& address) {
  TaskStatus status;
  status.address = address;
  const std::shared_ptr<Channel> channel = network.channel(address);
  try {
    Bytes reply =
        blocking_call(*channel, "/tensorflow.WorkerService/GetStatus", {}, {.timeout = kPatience});
    proto::GetStatusResponse response;
    read_message(reply, response);
    for (const proto::DeviceAttributes& device : response.device_attributes) {
      status.devices.push_back({device.name, device.device_type,
                                static_cast<std::uint64_t>(device.incarnation),
                                device.memory_limit});
      status.task = task_of_device(device.name);
    }
    reply = blocking_call(*channel, kStatusMethod, {}, {.timeout = kPatience});
    status.json = reply.flat();
  } catch (const UnimplementedError&) {  // one of TensorFlow's
  } catch (const Error& error) {
    status.error = error.what();
  }
  return status;
}

// The other tasks that an answer names: by name the address.
std::map<std::string, std::string> tasks_in(const std::string& json) {
  std::map<std::string, std::string> tasks;
  const nlohmann::json status = nlohmann::json::parse(json, nullptr, false);
  if (!status.is_object() || !status.contains("cluster") || !status["cluster"].is_object())
    return tasks;
  for (const auto& [job, addresses] : status["cluster"].items()) {
    if (!addresses.is_object()) continue;
    for (const auto& [task, address] : addresses.items()) {
      if (address.is_string())
        tasks[cat("/job:", job, "/replica:0/task:", task)] = address.get<std::string>();
    }
  }
  return tasks;
}

}  // namespace

std::vector<TaskStatus> cluster_status(const std::string& target, const Security& security) {
  GrpcNetwork network({security.certificate, security.key, security.authority});
  std::vector<TaskStatus> all{ask(network, address_of_target(target))};
  if (!all.front().error.empty())
    throw UnavailableError(cat("No task answers at ", target, ": ", all.front().error));
  const std::string asked = all.front().task;
  for (const auto& [task, address] : tasks_in(all.front().json)) {
    if (task == asked) continue;
    TaskStatus status = ask(network, address);
    status.task = task;
    all.push_back(std::move(status));
  }
  std::sort(all.begin(), all.end(),
            [](const TaskStatus& a, const TaskStatus& b) { return a.task < b.task; });
  return all;
}

}  // namespace tandem::distribute
