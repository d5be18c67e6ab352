#pragma once

#include "tandem/graph/graph.h"

namespace tandem::placement {

/// Constants, arguments and results are no tasks.
inline bool is_task(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kConst: return !node.control_inputs().empty();
    case NodeKind::kArg:
    case NodeKind::kRetval: return false;
    default: return true;
  }
}

/// Constants are made wherever they are wanted, not copied.
inline bool is_everywhere(const Node& node) { return node.kind() == NodeKind::kConst; }

/// What a loop hands to its next iteration is no edge within one.
inline bool is_back_edge(const Node& from, const Node& to) {
  return from.kind() == NodeKind::kNextIteration && to.kind() == NodeKind::kMerge;
}

/// The bytes of the variable that a node stands for; 0 for other nodes and unknown sizes.
double variable_bytes(const Node& node);

/// The input whose memory an output lies in, or takes over if nobody else reads it; -1 if none.
int shared_input(const Node& node, int output);
int reusable_input(const Node& node, int output);

}  // namespace tandem::placement
