#pragma once

#include <map>
#include <string>
#include <vector>

#include "tandem/distribute/proto/messages.h"
#include "tandem/placement/device_set.h"
#include "tandem/runtime/partition/partition.h"

namespace tandem {
class Runtime;
}

namespace tandem::distribute {

/// The devices that a session may place nodes on: those of the master's own task, then those of
/// others, by what their tasks have reported (assumed_devices.h). Immutable.
class ClusterDevices {
 public:
  /// `addresses`: of all tasks ("host:port"), by full name.
  ClusterDevices(const Runtime& own, const std::vector<proto::DeviceAttributes>& others,
                 const std::map<std::string, std::string>& addresses);

  const DeviceSet& set() const { return set_; }
  /// In the order of the set.
  const std::vector<PartitionDevice>& devices() const { return devices_; }
  /// The master's own task, "/job:worker/replica:0/task:0".
  const std::string& own_task() const { return own_task_; }

 private:
  DeviceSet set_;
  std::vector<PartitionDevice> devices_;
  std::string own_task_;
};

}  // namespace tandem::distribute
