#pragma once

#include <functional>

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

/// The input whose memory an output lies in; -1 if there is none.
int shared_input(const Node& node, int output);
/// The first input whose memory an output may take over and for which `is_last_reader(input)`, so
/// that nothing reads it later; -1 if there is none.
int reusable_input(const Node& node, int output, const std::function<bool(int)>& is_last_reader);

}  // namespace tandem::placement
