#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/distribute/cluster_spec.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// The tasks of a cluster and the ways to them. Immutable; thread-safe.
class Peers {
 public:
  /// `network` must outlive this.
  Peers(const ClusterSpec& cluster, Network& network);

  /// Full names of all tasks, "/job:worker/replica:0/task:1", in order of job and task.
  const std::vector<std::string>& names() const { return names_; }
  /// By name, "host:port".
  const std::map<std::string, std::string>& addresses() const { return addresses_; }
  /// Null if the cluster has no such task.
  Channel* find(std::string_view task) const;
  /// Null for a device of no task of the cluster.
  Channel* of_device(std::string_view device) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> addresses_;
  std::map<std::string, std::shared_ptr<Channel>, std::less<>> channels_;
};

/// "/job:worker/replica:0/task:1" of a job and task, or of a full device name.
std::string task_name(std::string_view job, int task);
std::string_view task_of_device(std::string_view device);

}  // namespace tandem::distribute
