#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/placement/placement.h"

namespace tandem {

/// What binds a graph's nodes, found before a policy chooses: scopes, colocation, kernels that
/// exist, fixed arguments and resources.
struct Constraints {
  /// Nodes that go to one device. A node that nothing binds is a group of its own.
  struct Group {
    int allowed = 0;     ///< index into `allowed`
    int greedy = 0;      ///< the device that the greedy policy takes
    bool asked = false;  ///< `allowed` follows from a request, a fixed place or a fallback from one
  };
  std::vector<int> group;  ///< by node id; -1 for ids without a node
  std::vector<Group> groups;
  /// Lists of devices, in the order of preference; never empty. Shared, since there are few.
  std::vector<std::vector<int>> allowed;
};

/// The cost policy: the placement that the simulator finds fastest, starting from the greedy one
/// (`greedy`, whose reasons and refusals are kept where nothing is moved), which it never makes
/// slower, unless that holds more than the devices' memory. Deterministic; the effort is bounded by
/// the graph's size.
TANDEM_EXPORT Placement place_by_cost(const Graph& graph, const CostModel& costs,
                                      const Constraints& constraints, Placement greedy);

}  // namespace tandem
