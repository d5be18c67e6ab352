#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"
#include "tandem/placement/device_set.h"

namespace tandem::placement {

/// "GPU:0"; the whole name where another job, replica or task has such a device too.
std::string short_name(const DeviceSet& devices, int device);

/// On which devices a node can run. Devices that take the same ops are of one kind.
class KernelSupport {
 public:
  using Kinds = std::uint64_t;  ///< a set of kinds: bit k for kind k
  struct Entry {
    Kinds kinds = 0;
    std::vector<std::string> refused;  ///< "GPU:0: takes or gives strings", a few of them
  };

  KernelSupport(const DeviceSet& devices, const KernelRegistry& kernels);

  /// The entry that all nodes of an op and its types share. Stays valid.
  const Entry& of(const Node& node);
  bool takes(Kinds kinds, int device) const {
    return (kinds >> kind_of_[static_cast<std::size_t>(device)] & 1) != 0;
  }
  Kinds all() const { return all_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  Entry find(const Node& node) const;
  std::string refusal(const Node& node, const DeviceModel& device) const;

  const DeviceSet& devices_;
  const KernelRegistry& kernels_;
  std::vector<int> kind_of_;          // by device
  std::vector<int> representatives_;  // by kind: a device
  Kinds all_ = 0;
  std::deque<Entry> entries_;
  std::unordered_map<std::string, const Entry*, Hash, std::equal_to<>> by_key_;
  std::string key_;
};

}  // namespace tandem::placement
