#include "tandem/distribute/internal/task/peers.h"

#include "tandem/core/error.h"

namespace tandem::distribute {

Peers::Peers(const ClusterSpec& cluster, Network& network) {
  for (const auto& [job, tasks] : cluster.jobs()) {
    for (const auto& [task, address] : tasks) {
      names_.push_back(task_name(job, task));
      addresses_.emplace(names_.back(), address);
      channels_.emplace(names_.back(), network.channel(address));
    }
  }
}

Channel* Peers::find(std::string_view task) const {
  const auto found = channels_.find(task);
  return found == channels_.end() ? nullptr : found->second.get();
}

Channel* Peers::of_device(std::string_view device) const { return find(task_of_device(device)); }

std::string task_name(std::string_view job, int task) {
  return cat("/job:", job, "/replica:0/task:", task);
}

std::string_view task_of_device(std::string_view device) {
  return device.substr(0, device.find("/device:"));
}

}  // namespace tandem::distribute
