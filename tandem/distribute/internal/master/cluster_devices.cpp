#include "tandem/distribute/internal/master/cluster_devices.h"

#include "tandem/core/error.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {

ClusterDevices::ClusterDevices(const Runtime& own,
                               const std::vector<proto::DeviceAttributes>& others)
    : set_(DeviceSet::of(own.devices())), own_task_(own.task().to_string()) {
  for (const auto& device : own.devices())
    devices_.push_back({device->name(), device->incarnation()});
  // Other tasks do not report how fast they are: the same kind of machine is assumed.
  const DeviceModel host = set_.devices.front();
  for (const proto::DeviceAttributes& device : others) {
    DeviceModel model = device.device_type == "CPU" ? host : DeviceModel{};
    model.spec = DeviceSpec::parse(device.name);
    if (!model.spec.job || !model.spec.task || !model.spec.type || !model.spec.index) {
      throw InvalidArgumentError(
          cat("A task reports a device '", device.name, "', which is no full name."));
    }
    model.host_memory = device.device_type == "CPU";
    model.memory_bytes = static_cast<std::size_t>(device.memory_limit);
    model.physical = -1;
    set_.devices.push_back(std::move(model));
    devices_.push_back({device.name, static_cast<std::uint64_t>(device.incarnation)});
  }
  set_.find_hosts();
}

}  // namespace tandem::distribute
