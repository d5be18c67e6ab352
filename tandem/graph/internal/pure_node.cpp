#include "tandem/graph/internal/pure_node.h"

#include <algorithm>

#include "tandem/graph/graph.h"

namespace tandem::passes {
namespace {

bool uses_references(const Node& node) {
  return std::any_of(node.output_dtypes().begin(), node.output_dtypes().end(), is_ref) ||
         std::any_of(node.inputs().begin(), node.inputs().end(),
                     [](const Output& in) { return is_ref(in.node->output_dtype(in.index)); });
}

}  // namespace

bool is_control_flow(NodeKind kind) {
  switch (kind) {
    case NodeKind::kSwitch:
    case NodeKind::kMerge:
    case NodeKind::kEnter:
    case NodeKind::kExit:
    case NodeKind::kNextIteration:
    case NodeKind::kLoopCond: return true;
    default: return false;
  }
}

bool is_pure(const Node& node) {
  return !node.op().traits.stateful && node.kind() != NodeKind::kArg &&
         node.kind() != NodeKind::kRetval && !is_control_flow(node.kind()) &&
         !uses_references(node);
}

}  // namespace tandem::passes
