#include "tandem/graph/internal/frames.h"

#include <algorithm>

namespace tandem {

bool holds_control_flow(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    switch (node->kind()) {
      case NodeKind::kSwitch:
      case NodeKind::kMerge:
      case NodeKind::kEnter:
      case NodeKind::kExit:
      case NodeKind::kNextIteration: return true;
      default: return false;
    }
  });
}

}  // namespace tandem
