#include "tandem/graph/internal/frames.h"

#include <algorithm>

#include "tandem/graph/internal/pure_node.h"

namespace tandem {

bool holds_control_flow(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const auto& node) { return passes::is_control_flow(node->kind()); });
}

}  // namespace tandem
