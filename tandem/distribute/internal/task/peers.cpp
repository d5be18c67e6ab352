#include "tandem/distribute/internal/task/peers.h"

#include "tandem/core/error.h"

namespace tandem::distribute {

Peers::Peers(const ClusterSpec& cluster, Network& network) : network_(network) { update(cluster); }

bool Peers::update(const ClusterSpec& cluster) {
  bool is_news = false;
  const MutexLock lock(mutex_);
  for (const auto& [job, tasks] : cluster.jobs()) {
    for (const auto& [task, address] : tasks) {
      std::shared_ptr<RoutedChannel>& channel = channels_[task_name(job, task)];
      if (!channel) {
        channel = std::make_shared<RoutedChannel>(network_.channel(address));
      } else if (cluster_.address(job, task) != address) {
        channel->set(network_.channel(address));
      } else {
        continue;
      }
      cluster_.set_address(job, task, address);
      is_news = true;
    }
  }
  return is_news;
}

ClusterSpec Peers::cluster() const {
  const MutexLock lock(mutex_);
  return cluster_;
}

std::vector<std::string> Peers::names() const {
  std::vector<std::string> names;
  const MutexLock lock(mutex_);
  for (const auto& [job, tasks] : cluster_.jobs()) {
    for (const auto& [task, address] : tasks) names.push_back(task_name(job, task));
  }
  return names;
}

std::map<std::string, std::string> Peers::addresses() const {
  std::map<std::string, std::string> addresses;
  const MutexLock lock(mutex_);
  for (const auto& [job, tasks] : cluster_.jobs()) {
    for (const auto& [task, address] : tasks) addresses.emplace(task_name(job, task), address);
  }
  return addresses;
}

std::shared_ptr<Channel> Peers::channel(std::string_view task) const {
  const MutexLock lock(mutex_);
  const auto found = channels_.find(task);
  return found == channels_.end() ? nullptr : found->second;
}

Channel* Peers::of_device(std::string_view device) const { return find(task_of_device(device)); }

std::string task_name(std::string_view job, int task) {
  return cat("/job:", job, "/replica:0/task:", task);
}

std::string_view task_of_device(std::string_view device) {
  return device.substr(0, device.find("/device:"));
}

}  // namespace tandem::distribute
