#include "tandem/core/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

namespace tandem {
namespace {

// The first words of a file, read as numbers; nothing where one is not a number ("max").
template <int kWords>
std::optional<std::array<double, kWords>> numbers_in(const std::string& path) {
  std::ifstream file(path);
  std::array<double, kWords> numbers{};
  for (double& number : numbers) {
    if (!(file >> number)) return std::nullopt;
  }
  return numbers;
}

// Calls f(folder) for a group and all those around it, whether they can be seen or not.
void for_each_group(const std::string& hierarchy, std::string group,
                    const std::function<void(const std::string&)>& f) {
  while (!group.empty() && group != "/") {
    f(hierarchy + group);
    const std::size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
  f(hierarchy);
}

bool names(std::string_view controllers, std::string_view controller) {
  while (true) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == controller) return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

int processors_of_machine() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Refused where the machine may have more processors than a set has room for.
  const int count = sched_getaffinity(0, sizeof(set), &set) == 0
                        ? CPU_COUNT(&set)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, count);
}

class Reader {
 public:
  Reader(const std::string& root, int processors) : groups_(root + "/sys/fs/cgroup") {
    const auto pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    limits_.memory = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
    limits_.processors = processors > 0 ? processors : processors_of_machine();
    // Lines of "ID:CONTROLLERS:/GROUP", without controllers for version 2.
    std::ifstream file(root + "/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string id, controllers, group;
      std::getline(std::getline(fields, id, ':'), controllers, ':');
      std::getline(fields, group);
      // A group outside what the process sees: whatever lies there is not its own.
      if (!group.starts_with("/..")) read(controllers, group);
    }
  }
  const ResourceLimits& limits() const { return limits_; }

 private:
  void read(const std::string& controllers, const std::string& group) {
    if (controllers.empty()) {
      // Beside hierarchies of version 1 it has a folder of its own.
      for (const char* folder : {"", "/unified"}) read_version_2(groups_ + folder, group);
    }
    // Systems name a hierarchy after one controller, after all of its controllers, or both.
    for (const std::string& folder : {std::string("/memory"), "/" + controllers}) {
      if (names(controllers, "memory")) read_memory(groups_ + folder, group);
    }
    for (const std::string& folder : {std::string("/cpu"), "/" + controllers}) {
      if (names(controllers, "cpu")) read_quota(groups_ + folder, group);
    }
  }
  void read_version_2(const std::string& hierarchy, const std::string& group) {
    for_each_group(hierarchy, group, [this](const std::string& folder) {
      if (const auto bytes = numbers_in<1>(folder + "/memory.max")) memory((*bytes)[0]);
      if (const auto time = numbers_in<2>(folder + "/cpu.max")) quota((*time)[0], (*time)[1]);
    });
  }
  void read_memory(const std::string& hierarchy, const std::string& group) {
    for_each_group(hierarchy, group, [this](const std::string& folder) {
      if (const auto bytes = numbers_in<1>(folder + "/memory.limit_in_bytes")) memory((*bytes)[0]);
    });
  }
  void read_quota(const std::string& hierarchy, const std::string& group) {
    for_each_group(hierarchy, group, [this](const std::string& folder) {
      const auto time = numbers_in<1>(folder + "/cpu.cfs_quota_us");
      const auto period = numbers_in<1>(folder + "/cpu.cfs_period_us");
      if (time && period) quota((*time)[0], (*period)[0]);
    });
  }
  void memory(double bytes) {
    if (!(bytes > 0 && bytes < static_cast<double>(limits_.memory))) return;
    limits_.memory = static_cast<std::uint64_t>(bytes);
    limits_.memory_from_cgroup = true;
  }
  // -1 of version 1 is no limit.
  void quota(double time, double period) {
    if (!(time > 0 && period > 0 && time <= period * (limits_.processors - 1))) return;
    limits_.processors = static_cast<int>(std::ceil(time / period));
    limits_.processors_of_group = true;
  }

  const std::string groups_;
  ResourceLimits limits_;
};

}  // namespace

const ResourceLimits& machine_limits() {
  static const ResourceLimits limits = read_resource_limits();
  return limits;
}

ResourceLimits read_resource_limits(const std::string& root, int processors) {
  return Reader(root, processors).limits();
}

}  // namespace tandem
