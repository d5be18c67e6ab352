#include "tandem/distribute/internal/task/assumed_devices.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"

namespace tandem::distribute {
namespace {

constexpr const char* kThisMachine = "localhost";
// Between machines: 10 Gbit/s Ethernet. Between processes of a machine: what calls over loopback
// reach.
constexpr NetworkLink kBetweenMachines{.bandwidth = 1.25e9, .latency = 1e-4};
constexpr NetworkLink kWithinMachine{.bandwidth = 2e9, .latency = 5e-5};

DeviceModel common_accelerator() {
  DeviceModel model;
  model.flops = 1e13;
  model.memory_bandwidth = 5e11;
  model.launch_overhead = 5e-6;
  model.link_bandwidth = 1.2e10;
  model.link_latency = 1e-5;
  return model;
}

// "h1" of "h1:2222"; this machine has one name however it is addressed.
std::string machine_of(const std::string& address) {
  if (address.empty() || address.starts_with("unix:")) return kThisMachine;
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with("127.") || host == "[::1]") return kThisMachine;
  char own[256] = {};
  if (::gethostname(own, sizeof(own) - 1) == 0 && host == own) return kThisMachine;
  return host;
}

}  // namespace

void add_assumed_devices(DeviceSet& set, const std::vector<proto::DeviceAttributes>& devices,
                         const DeviceModel& host) {
  const std::vector<DeviceModel> own = set.devices;
  for (const proto::DeviceAttributes& device : devices) {
    const auto alike = std::find_if(own.begin(), own.end(), [&](const DeviceModel& model) {
      return model.spec.type == device.device_type;
    });
    DeviceModel model = device.device_type == "CPU" ? host
                        : alike != own.end()        ? *alike
                                                    : common_accelerator();
    model.spec = DeviceSpec::parse(device.name);
    if (!model.spec.job || !model.spec.task || !model.spec.type || !model.spec.index) {
      throw InvalidArgumentError(
          cat("A task reports a device '", device.name, "', which is no full name."));
    }
    model.host_memory = device.device_type == "CPU";
    model.memory_bytes = static_cast<std::size_t>(std::max<std::int64_t>(0, device.memory_limit));
    model.physical = -1;
    model.lost.clear();
    set.devices.push_back(std::move(model));
  }
  set.find_hosts();
}

void assume_network(DeviceSet& set, const std::map<std::string, std::string>& addresses) {
  for (DeviceModel& device : set.devices) {
    const auto found = addresses.find(device.spec.task_spec().to_string());
    device.machine = found == addresses.end() ? kThisMachine : machine_of(found->second);
    set.links[{device.machine, device.machine}] = kWithinMachine;
  }
  set.network = kBetweenMachines;
}

}  // namespace tandem::distribute
