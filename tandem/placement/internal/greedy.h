#pragma once

#include <vector>

#include "tandem/placement/constraints.h"
#include "tandem/placement/internal/candidates.h"

namespace tandem::placement {

/// The greedy policy, which is TensorFlow's: each node takes the first of its devices, but
///  - what reads only the shape of a value (Shape, Size, Rank) goes where the value is made,
///  - a node without inputs (constants, arguments) goes where all nodes are that use it.
struct Greedy {
  std::vector<int> device;          ///< by node id
  std::vector<const Node*> beside;  ///< by node id: the other node of those two rules, or null
  std::vector<const Node*> order;   ///< nodes as they were placed
  std::vector<const Node*> first;   ///< by group: its node that was placed first
  Constraints constraints;
  std::vector<bool> soft;  ///< by group: not where it was asked for
};

Greedy place_greedily(const Graph& graph, const Colocation& colocation, Candidates& candidates);

/// Why a node is where the greedy policy puts it.
class Reasons {
 public:
  Reasons(const DeviceSet& devices, const SpecTable& specs, const Colocation& colocation,
          KernelSupport& support, const Greedy& greedy)
      : devices_(devices),
        specs_(specs),
        colocation_(colocation),
        support_(support),
        greedy_(greedy) {}
  NodePlacement of(const Node& node) const;

 private:
  void asked(const Node& node, NodePlacement& p) const;
  void free(const Node& node, int group, NodePlacement& p) const;
  /// Whether `device` is one that a node with a request asked for.
  bool is_where_asked(const Node& node, int device) const;

  const DeviceSet& devices_;
  const SpecTable& specs_;
  const Colocation& colocation_;
  KernelSupport& support_;
  const Greedy& greedy_;
};

}  // namespace tandem::placement
