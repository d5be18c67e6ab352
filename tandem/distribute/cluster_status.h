#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/distribute/server.h"
#include "tandem/placement/device_set.h"

namespace tandem::distribute {

/// What a task of a cluster says of itself, for `td cluster status`.
struct TaskStatus {
  std::string task;     ///< "/job:worker/replica:0/task:1"
  std::string address;  ///< "host:port"
  std::string error;    ///< why it could not be asked; empty: it answered
  std::string json;     ///< its answer (docs/cluster.md lists the fields); empty for TensorFlow's
  struct Device {
    std::string name;
    std::string type;
    std::uint64_t incarnation = 0;
    std::int64_t memory_limit = 0;
  };
  std::vector<Device> devices;
};

/// Asks the task at `target`, and all others that it knows, each for a few seconds at most. Throws
/// UnavailableError if the first one cannot be reached.
TANDEM_EXPORT std::vector<TaskStatus> cluster_status(const String& target,
                                                     const Security& security = {});

/// The devices of the cluster that the task at `target` belongs to, its own first, for planning:
/// `td::explain` and the cost model. Tasks do not report how fast they are: CPUs are taken to be
/// like this machine's, accelerators and the network to be common ones, and ways within a machine
/// to be shorter. Throws what `cluster_status` throws, and UnavailableError naming a task that does
/// not answer.
TANDEM_EXPORT DeviceSet cluster_devices(const String& target, const Security& security = {});

}  // namespace tandem::distribute
