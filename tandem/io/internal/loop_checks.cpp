#include "tandem/io/internal/loop_checks.h"

#include <algorithm>
#include <cstddef>

#include "tandem/core/error.h"
#include "tandem/graph/internal/frames.h"

namespace tandem::io {
namespace {

std::size_t at(const Node* node) { return static_cast<std::size_t>(node->id()); }

// By node id: in how many loops, one within the other, the outputs are.
std::vector<int> loop_depths(const Graph& graph) {
  std::vector<int> depths(static_cast<std::size_t>(graph.id_limit()), 0);
  for (const Node* node : graph.topological_order()) {
    int depth = 0;
    for (const Output& in : node->inputs()) depth = std::max(depth, depths[at(in.node)]);
    for (const Node* before : node->control_inputs()) depth = std::max(depth, depths[at(before)]);
    if (node->kind() == NodeKind::kEnter) ++depth;
    if (node->kind() == NodeKind::kExit) depth = std::max(depth - 1, 0);
    depths[at(node)] = depth;
  }
  return depths;
}

bool stands_in_a_loop(const Node* node, const std::vector<int>& depths) {
  switch (node->kind()) {
    case NodeKind::kEnter: return depths[at(node)] > 1;
    case NodeKind::kExit:
    case NodeKind::kNextIteration:
    case NodeKind::kLoopCond: return true;
    case NodeKind::kMerge:
      return depths[at(node)] > 0 ||
             std::any_of(node->inputs().begin(), node->inputs().end(), [](const Output& in) {
               return in.node->kind() == NodeKind::kNextIteration;
             });
    default: return depths[at(node)] > 0;
  }
}

// Whether what is made from the fed value is part of a loop into which no Enter takes it.
bool leads_into_a_loop(const Node* fed, const std::vector<std::vector<Node*>>& users,
                       const std::vector<int>& depths) {
  std::vector<const Node*> open{fed};
  std::vector<bool> seen(depths.size(), false);
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Node* user : users[at(node)]) {
      if (seen[at(user)]) continue;
      seen[at(user)] = true;
      if (stands_in_a_loop(user, depths)) return true;
      if (user->kind() != NodeKind::kEnter) open.push_back(user);
    }
  }
  return false;
}

[[noreturn]] void refuse(const std::string& name, const char* what, const char* instead) {
  throw InvalidArgumentError(cat("Tensor '", name, "' lies inside of a loop, where it has a value ",
                                 "in every round, so it cannot be ", what, ". ", instead));
}

}  // namespace

void check_outside_of_loops(const MutableFunction& step, const Graph& whole,
                            const std::vector<Output>& fed, const std::vector<std::string>& feeds,
                            const std::vector<std::string>& fetches) {
  if (!holds_control_flow(step.graph)) return;
  const std::vector<int> depths = loop_depths(step.graph);
  const std::vector<int> own_depths = feeds.empty() ? std::vector<int>() : loop_depths(whole);
  const auto users = step.graph.consumers();
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    // An Exit, say, to which no Enter leads makes no loop: where the graph runs, the error is that.
    if (own_depths[at(fed[i].node)] > 0 && leads_into_a_loop(step.args[i], users, depths))
      refuse(feeds[i], "fed", "Feed what an Enter takes into the loop.");
  }
  for (std::size_t i = 0; i < fetches.size(); ++i) {
    if (depths[at(step.results[i].node)] > 0)
      refuse(fetches[i], "fetched", "Fetch the output of an Exit.");
  }
}

}  // namespace tandem::io
