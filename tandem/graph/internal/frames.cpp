#include "tandem/graph/internal/frames.h"

#include <algorithm>

#include "tandem/graph/internal/pure_node.h"

namespace tandem {

namespace {

// What comes from a part with control flow may be dead.
bool may_receive_dead(const Node& node) {
  if (node.kind() != NodeKind::kRecv) return false;
  const AttrValue* live = node.attrs().find(kAlwaysLiveAttr);
  return live == nullptr || live->get_if<bool>() == nullptr || !*live->get_if<bool>();
}

}  // namespace

bool holds_control_flow(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    return passes::is_control_flow(node->kind()) || may_receive_dead(*node);
  });
}

}  // namespace tandem
