#include "tandem/distribute/internal/master/cluster_devices.h"

#include "tandem/distribute/internal/task/assumed_devices.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {

ClusterDevices::ClusterDevices(const Runtime& own,
                               const std::vector<proto::DeviceAttributes>& others,
                               const std::map<std::string, std::string>& addresses)
    : set_(DeviceSet::of(own.devices())), own_task_(own.task().to_string()) {
  for (const auto& device : own.devices())
    devices_.push_back({device->name(), device->incarnation()});
  add_assumed_devices(set_, others, DeviceModel(set_.devices.front()));
  assume_network(set_, addresses);
  for (const proto::DeviceAttributes& device : others)
    devices_.push_back({device.name, static_cast<std::uint64_t>(device.incarnation)});
}

}  // namespace tandem::distribute
