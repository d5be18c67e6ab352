#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/cluster_spec.h"
#include "tandem/distribute/internal/rpc/routed_channel.h"

namespace tandem::distribute {

/// The tasks of a cluster and the ways to them. Thread-safe.
class Peers {
 public:
  /// `network` must outlive this.
  Peers(const ClusterSpec& cluster, Network& network);
  /// Learns of tasks that are new and of those that have moved. Tasks that are left out stay: they
  /// may only be away. True if anything is new.
  bool update(const ClusterSpec& cluster);

  ClusterSpec cluster() const;
  /// Full names of all tasks, "/job:worker/replica:0/task:1", in order of job and task.
  std::vector<std::string> names() const;
  /// By name, "host:port".
  std::map<std::string, std::string> addresses() const;
  /// Null if the cluster has no such task. It stays the way to the task where that moves, and lives
  /// as long as this.
  std::shared_ptr<Channel> channel(std::string_view task) const;
  Channel* find(std::string_view task) const { return channel(task).get(); }
  /// Null for a device of no task of the cluster.
  Channel* of_device(std::string_view device) const;

 private:
  Network& network_;
  mutable Mutex mutex_;
  ClusterSpec cluster_ TANDEM_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<RoutedChannel>, std::less<>> channels_
      TANDEM_GUARDED_BY(mutex_);
};

/// "/job:worker/replica:0/task:1" of a job and task, or of a full device name.
std::string task_name(std::string_view job, int task);
std::string_view task_of_device(std::string_view device);

}  // namespace tandem::distribute
