#pragma once

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"

namespace tandem {

class OpRegistry;

/// What an op's RewriteFn sees: the node, and the means to replace it.
class TANDEM_EXPORT RewriteContext {
 public:
  RewriteContext(Graph& graph, const OpRegistry& ops, Node& node)
      : graph_(graph), ops_(ops), node_(node) {}
  Graph& graph() { return graph_; }
  const OpRegistry& ops() const { return ops_; }
  Node& node() { return node_; }
  /// Input i's constant value, or null.
  const Array* constant(int i) const;
  /// True if input i is a constant all of whose elements equal `value`.
  bool is_constant(int i, double value) const;
  /// Makes users of output 0 use `value`. False if the dtypes or known shapes would differ.
  bool replace_with(Output value);
  /// What replaced output 0; its node is null if nothing did.
  Output replacement() const { return replacement_; }

 private:
  bool others_are_scalars(Output value) const;

  Graph& graph_;
  const OpRegistry& ops_;
  Node& node_;
  Output replacement_;
};

}  // namespace tandem
