#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tandem/placement/internal/colocation.h"

namespace tandem::placement {

/// Which devices each set of colocated nodes may take, best first: those of the default device's
/// name, then accelerators in the order of their types and indices, then CPUs.
class Candidates {
 public:
  struct Choice {
    int list = -1;      ///< index into `lists`
    bool soft = false;  ///< none of the devices asked for can run the nodes
  };

  /// Throws InvalidArgumentError if no device has the default's name and placement isn't soft.
  Candidates(const DeviceSet& devices, const PlacementOptions& options, SpecTable& specs,
             KernelSupport& support, const Colocation& colocation, const Graph& graph);

  /// Throws InvalidArgumentError if there is no such device.
  Choice of(const Node& node);
  std::vector<std::vector<int>> lists;

 private:
  Choice find(const Bonds& bonds);
  std::vector<int> filter(const DeviceSpec& spec, KernelSupport::Kinds kinds) const;
  /// Keeps type and index only where `by` says them.
  static DeviceSpec loosened(DeviceSpec spec, std::initializer_list<const DeviceSpec*> by);
  [[noreturn]] void fail(const Node& node) const;
  void fail_where_it_lies(const Node& value, int device) const;
  std::string explicitly_assigned(const Node& node) const;
  std::string names(const std::vector<int>& which) const;
  std::string members(int root) const;

  const DeviceSet& devices_;
  const PlacementOptions& options_;
  SpecTable& specs_;
  KernelSupport& support_;
  const Colocation& colocation_;
  const Graph& graph_;
  std::vector<int> preference_;
  std::vector<Choice> by_root_;
  std::map<std::array<std::uint64_t, 4>, Choice> known_;
};

}  // namespace tandem::placement
