#include "tandem/distribute/cluster_status.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/client/blocking_call.h"
#include "tandem/distribute/internal/rpc/task_network.h"
#include "tandem/distribute/internal/server/status_service.h"
#include "tandem/distribute/internal/task/assumed_devices.h"
#include "tandem/distribute/internal/task/peers.h"
#include "tandem/distribute/internal/wire/messages.h"
#include "tandem/runtime/runtime.h"

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

std::vector<TaskStatus> cluster_status(const String& target, const Security& security) {
  TaskNetwork network({security.certificate, security.key, security.authority});
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

DeviceSet cluster_devices(const String& target, const Security& security) {
  // Who answers with an address; TensorFlow's tasks name none of the others.
  std::map<std::string, std::string> addresses;
  for (const TaskStatus& task : cluster_status(target, security)) {
    if (!task.error.empty())
      throw UnavailableError(cat(task.task, " at ", task.address, ": ", task.error));
    addresses[task.task] = task.address;
  }
  TaskNetwork network({security.certificate, security.key, security.authority});
  const std::string address = address_of_target(target);
  Bytes reply = blocking_call(*network.channel(address), "/tensorflow.MasterService/ListDevices",
                              {}, {.timeout = kPatience});
  proto::ListDevicesResponse response;
  read_message(reply, response);
  std::vector<proto::DeviceAttributes> devices = std::move(response.local_device);
  devices.insert(devices.end(), response.remote_device.begin(), response.remote_device.end());
  // The first CPU of the task that is asked is where what is fed comes from.
  const auto asked = std::find_if(addresses.begin(), addresses.end(),
                                  [&](const auto& task) { return task.second == address; });
  std::stable_partition(devices.begin(), devices.end(), [&](const auto& device) {
    return device.device_type == "CPU" && asked != addresses.end() &&
           task_of_device(device.name) == asked->first;
  });
  for (const proto::DeviceAttributes& device : devices) {
    const std::string task(task_of_device(device.name));
    addresses.emplace(task, cat(task, ":0"));  // a machine of its own
  }
  DeviceSet set;
  add_assumed_devices(set, devices, DeviceSet::of(Runtime::current().devices()).devices.front());
  assume_network(set, addresses);
  return set;
}

}  // namespace tandem::distribute
