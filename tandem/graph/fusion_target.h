#pragma once

#include <span>
#include <string>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem {

/// Whom passes that make one op of several ask, in a graph whose nodes have devices
/// (`MutableFunction::target`).
class TANDEM_EXPORT FusionTarget {
 public:
  virtual ~FusionTarget();
  /// Whether both nodes run on one device. Constants and arguments run beside every node.
  virtual bool together(const Node& a, const Node& b) const = 0;
  /// Whether the new nodes `fused`, the last of which gives the results, may stand for `replaced`
  /// (each after its inputs): all of these run on one device, and it has kernels for the new ones.
  /// If so, they belong to that device from now on. If not, the caller leaves the graph as it was.
  virtual bool accepts(std::span<Node* const> fused, std::span<const Node* const> replaced) = 0;
  enum class Elementwise { kNo, kLarge, kAnySize };
  /// Whether fused elementwise ops on the node's device can do what it does, and for which values
  /// that pays: where each launch costs time, for those of any size.
  virtual Elementwise elementwise(const Node& node) const;
  /// Whether each launch costs time on the node's device: what computes the same in fewer is
  /// better, whatever a CPU's caches would gain by the parts.
  virtual bool launches_cost_time(const Node& node) const;
  /// Notes why two nodes that belong together by what they do are not fused.
  virtual void keep_apart(const Node& node, const Node& reader, const std::string& why);
};

}  // namespace tandem
