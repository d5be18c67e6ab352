#include "tandem/graph/internal/anchors.h"

#include <algorithm>
#include <unordered_set>

#include "tandem/graph/internal/pure_node.h"

namespace tandem::passes {
namespace {

bool has_effects(const Node& node) {
  return node.op().traits.stateful && !node.op().traits.reads_only;
}

}  // namespace

std::optional<std::vector<Node*>> anchors_of(const Output& value) {
  // Beyond this a value is left alone: to look at all that lies before each of many takes long, and
  // nodes that wait for so many are no gain.
  constexpr std::size_t kMaxAnchors = 32, kMaxSeen = 4096;
  std::vector<Node*> anchors, pending{value.node};
  std::unordered_set<const Node*> seen{value.node};
  const auto add = [&](Node* node) {
    if (std::find(anchors.begin(), anchors.end(), node) == anchors.end()) anchors.push_back(node);
  };
  while (!pending.empty()) {
    if (anchors.size() > kMaxAnchors || seen.size() > kMaxSeen) return std::nullopt;
    Node* node = pending.back();
    pending.pop_back();
    if (node->kind() == NodeKind::kSwitch) return std::nullopt;
    if (is_control_flow(node->kind()) || has_effects(*node)) {
      add(node);
      continue;
    }
    for (Node* before : node->control_inputs()) add(before);
    for (const Output& in : node->inputs()) {
      // Dead in the other branch, as the Switch itself is not.
      if (in.node->kind() == NodeKind::kSwitch) {
        add(node);
      } else if (seen.insert(in.node).second) {
        pending.push_back(in.node);
      }
    }
  }
  return anchors;
}

bool may_drop(const Output& value) {
  const auto anchors = anchors_of(value);
  return anchors && anchors->empty();
}

}  // namespace tandem::passes
