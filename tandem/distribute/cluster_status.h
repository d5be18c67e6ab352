#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/distribute/server.h"

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
TANDEM_EXPORT std::vector<TaskStatus> cluster_status(const std::string& target,
                                                     const Security& security = {});

}  // namespace tandem::distribute
