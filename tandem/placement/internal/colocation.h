#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/graph/graph.h"
#include "tandem/placement/device_set.h"
#include "tandem/placement/internal/kernel_support.h"
#include "tandem/placement/internal/spec_table.h"
#include "tandem/placement/placement.h"

namespace tandem::placement {

/// What binds a set of nodes that go to one device.
struct Bonds {
  int requested = 0;  ///< ids in a SpecTable. What scopes ask for; says all that the next two say
  int resource = 0;   ///< what scopes ask for nodes that make resources: not given up for others
  int given = 0;      ///< where a node is already
  KernelSupport::Kinds kinds = 0;  ///< kinds of devices that can run all of the nodes
  int asked_by = -1;               ///< node that set `requested`
  int narrowed_by = -1;            ///< node that runs on some kinds only
};

/// The nodes of a graph joined into sets that go to one device: along edges with resources and
/// references, and by attributes `_class: loc:@node`.
///
/// Requests that contradict each other within a set: a node that takes a resource gives its own up
/// for that of the op which makes it; of others, type and index become open with soft placement,
/// and without it InvalidArgumentError names both sides.
class Colocation {
 public:
  Colocation(const Graph& graph, const DeviceSet& devices, const PlacementOptions& options,
             SpecTable& specs, KernelSupport& support);

  int root(int node) const;
  const Bonds& bonds(int root) const { return members_[static_cast<std::size_t>(root)].bonds; }
  /// What the node itself asks for, 0 if nothing; or the device where it is given to be.
  int request(const Node& node) const { return requests_[static_cast<std::size_t>(node.id())]; }
  bool given(const Node& node) const { return given_[static_cast<std::size_t>(node.id())]; }
  const Node* node(int id) const { return nodes_[static_cast<std::size_t>(id)]; }

 private:
  struct Member {
    int parent = -1;
    int rank = 0;
    Bonds bonds;
  };
  void add(const Node& node);
  void give(const std::vector<std::pair<const Node*, int>>& fixed);
  void join_resource_edges();
  void join_edge(const Node& from, const Node& to);
  void join_classes();
  void join_class(const Node& node, int& first);
  /// Empty if the sets are one now; else why they can't be, and nothing has changed.
  std::string join(const Node& a, const Node& b);
  std::string sides(int root_a, int root_b) const;
  Member& member(int id) { return members_[static_cast<std::size_t>(id)]; }

  const Graph& graph_;
  const DeviceSet& devices_;
  const PlacementOptions& options_;
  SpecTable& specs_;
  KernelSupport& support_;
  mutable std::vector<Member> members_;  // by node id; `root` shortens paths
  std::vector<int> requests_;
  std::vector<bool> given_;
  std::vector<const Node*> nodes_;
};

}  // namespace tandem::placement
