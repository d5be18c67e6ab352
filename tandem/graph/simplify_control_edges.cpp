// Fewer control edges, and fewer nodes that exist for their sake.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/graph/internal/frames.h"
#include "tandem/graph/internal/pure_node.h"
#include "tandem/graph/internal/replacements.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"
#include "tandem/graph/rewrite.h"

namespace tandem::passes {
namespace {

// A node of one input that only forwards it, once certain others have run (the bodies of loops are
// full of them): who reads it may wait for those others himself.
bool forward_control_inputs(MutableFunction& f, const OpRegistry& ops) {
  bool changed = false;
  const auto consumers = f.graph.consumers();
  const auto index = [](const Node* node) { return static_cast<std::size_t>(node->id()); };
  std::vector<bool> stays(static_cast<std::size_t>(f.graph.id_limit()));  // results, waited for
  for (const Output& result : f.results) stays[index(result.node)] = true;
  for (const Node* node : f.control_results) stays[index(node)] = true;
  for (const auto& node : f.graph.nodes())
    for (const Node* before : node->control_inputs()) stays[index(before)] = true;
  Replacements replacements(f);
  for (Node* node : f.graph.topological_order()) {
    replacements.resolve_inputs(node);
    // The sizes of a value are another one.
    if (!node->op().rewrite || node->op().traits.value == ShapeValue::kShapeOfInput ||
        !is_pure(*node) || node->control_inputs().empty() || node->inputs().size() != 1 ||
        node->num_outputs() != 1)
      continue;
    const auto& users = consumers[index(node)];
    if (stays[index(node)] || std::any_of(users.begin(), users.end(), [](const Node* user) {
          return user->kind() == NodeKind::kMerge;
        }))
      continue;
    RewriteContext context(f.graph, ops, *node, nullptr, nullptr, &replacements);
    if (!node->op().rewrite(context) || !(context.replacement() == node->inputs()[0])) continue;
    for (Node* user : users)
      for (Node* before : node->control_inputs()) {
        f.graph.add_control_input(user, before);
        stays[index(before)] = true;
      }
    changed = true;
  }
  replacements.finish();
  if (changed) prune(f);
  return changed;
}

// Sets of node ids, one for each node.
class Ancestors {
 public:
  explicit Ancestors(std::size_t nodes)
      : words_((nodes + 63) / 64), bits_(nodes * words_, std::uint64_t{0}) {}
  void add(const Node* to, const Node* one) {
    bits_[row(to) + index(one) / 64] |= std::uint64_t{1} << (index(one) % 64);
  }
  void add_all(const Node* to, const Node* from) {
    for (std::size_t w = 0; w < words_; ++w) bits_[row(to) + w] |= bits_[row(from) + w];
  }
  bool has(const Node* set, const Node* one) const {
    return (bits_[row(set) + index(one) / 64] >> (index(one) % 64)) & 1;
  }

 private:
  static std::size_t index(const Node* node) { return static_cast<std::size_t>(node->id()); }
  std::size_t row(const Node* node) const { return index(node) * words_; }
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// Whether a node has run, and in the same iteration, only if all that it reads or waits for has.
bool follows_all_inputs(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kMerge:
    case NodeKind::kEnter:
    case NodeKind::kExit:
    case NodeKind::kNextIteration: return false;
    default: return !node.op().traits.runs_when_dead;
  }
}

// Drops control edges that other inputs imply: a node need not wait for what something else that it
// reads or waits for comes after.
bool drop_implied(MutableFunction& f) {
  constexpr int kMaxNodes = 10'000;  // the sets take the square of it in bits
  if (f.graph.id_limit() > kMaxNodes) return false;
  bool changed = false;
  Ancestors before(static_cast<std::size_t>(f.graph.id_limit()));
  for (Node* node : f.graph.topological_order()) {
    std::vector<Node*> waits = node->control_inputs();
    const auto implied = [&](const Node* one) {
      const auto leads_to = [&](const Node* other) {
        return other != one && follows_all_inputs(*other) && before.has(other, one);
      };
      return std::any_of(node->inputs().begin(), node->inputs().end(),
                         [&](const Output& in) { return in.node == one || leads_to(in.node); }) ||
             std::any_of(waits.begin(), waits.end(), leads_to);
    };
    if (follows_all_inputs(*node)) {
      for (std::size_t i = waits.size(); i-- > 0;)
        if (implied(waits[i])) waits.erase(waits.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (waits.size() != node->control_inputs().size()) {
      f.graph.set_control_inputs(node, waits);
      changed = true;
    }
    const auto follow = [&](const Node* input) {
      before.add(node, input);
      if (follows_all_inputs(*input)) before.add_all(node, input);
    };
    for (const Output& in : node->inputs())
      if (in.node) follow(in.node);
    for (const Node* input : waits) follow(input);
  }
  return changed;
}

}  // namespace

bool propagate_constant_control_inputs(MutableFunction& f) {
  Graph& graph = f.graph;
  const auto waits = [](const Node* node) {
    return node->kind() == NodeKind::kConst && !node->control_inputs().empty();
  };
  const auto& nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [&](const auto& n) { return waits(n.get()); }) ||
      holds_control_flow(graph))
    return false;
  for (Node* node : graph.topological_order()) {
    std::vector<const Node*> constants;
    for (const Output& in : node->inputs())
      if (waits(in.node)) constants.push_back(in.node);
    for (const Node* before : node->control_inputs())
      if (waits(before)) constants.push_back(before);
    for (const Node* constant : constants)
      for (Node* before : constant->control_inputs()) graph.add_control_input(node, before);
  }
  const auto keep = [&](const Node* constant) {
    for (Node* before : constant->control_inputs()) {
      if (std::find(f.control_results.begin(), f.control_results.end(), before) ==
          f.control_results.end())
        f.control_results.push_back(before);
    }
  };
  for (const Output& result : f.results)
    if (waits(result.node)) keep(result.node);
  for (std::size_t i = 0; i < f.control_results.size(); ++i)
    if (const Node* node = f.control_results[i]; waits(node)) keep(node);
  for (const auto& node : nodes)
    if (node->kind() == NodeKind::kConst) graph.set_control_inputs(node.get(), {});
  drop_implied(f);
  return true;
}

bool simplify_control_edges(MutableFunction& f, const OpRegistry& ops) {
  const bool forwarded = forward_control_inputs(f, ops);
  const bool dropped = drop_implied(f);
  if (dropped) prune(f);
  return forwarded || dropped;
}

}  // namespace tandem::passes
