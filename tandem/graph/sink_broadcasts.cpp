// What is computed from a broadcast value and scalars is computed before it is broadcast.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/internal/pure_node.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/passes.h"

namespace tandem::passes {
namespace {

constexpr const char* kBroadcast = "BroadcastTo";

// On empty tensors, ops would compute what is not needed, and might fail.
bool is_broadcast(const Node& node) {
  return node.op().name == kBroadcast && is_pure(node) && node.output_shape(0).is_fully_known() &&
         node.output_shape(0).num_elements() > 0 &&
         node.inputs()[1].node->kind() == NodeKind::kConst;
}

// Which input is a broadcast, if all others are scalars; else -1. Of equal shapes alone is it known
// that the result has that of the broadcast.
int broadcast_input(const Node& node) {
  const OpTraits& traits = node.op().traits;
  if (!traits.elementwise || traits.host_inputs != 0 || !is_pure(node) || node.num_outputs() != 1 ||
      node.kind() != NodeKind::kPlain)
    return -1;
  int found = -1;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Output in = node.inputs()[i];
    if (in.node->output_shape(in.index) == PartialShape::scalar()) continue;
    if (found >= 0 || !is_broadcast(*in.node)) return -1;
    found = static_cast<int>(i);
  }
  if (found < 0) return -1;
  const Node& broadcast = *node.inputs()[static_cast<std::size_t>(found)].node;
  return node.output_shape(0) == broadcast.output_shape(0) ? found : -1;
}

Node* add_like(Graph& graph, const Node& node, std::string name, const OpDef& op,
               std::vector<Output> inputs, AttrMap attrs) {
  Graph::NodeSpec spec;
  spec.op = &op;
  spec.name = std::move(name);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.control_inputs = node.control_inputs();
  spec.device = node.requested_device();
  spec.where = node.where();
  return graph.add(std::move(spec));
}

// Who waits for `node` waits for `other`, which computes as much of it as takes long.
void wait_for(MutableFunction& f, const std::vector<Node*>& users, Node* node, Node* other) {
  for (Node* user : users) {
    std::vector<Node*> waits = user->control_inputs();
    const auto at = std::find(waits.begin(), waits.end(), node);
    if (at == waits.end()) continue;
    waits.erase(at);
    if (std::find(waits.begin(), waits.end(), other) == waits.end()) waits.push_back(other);
    f.graph.set_control_inputs(user, std::move(waits));
  }
  std::replace(f.control_results.begin(), f.control_results.end(), node, other);
}

}  // namespace

bool sink_broadcasts(MutableFunction& f, const OpRegistry& ops) {
  const OpDef* op = ops.find(kBroadcast);
  if (!op) return false;
  bool changed = false;
  const auto users = f.graph.consumers();
  for (Node* node : f.graph.topological_order()) {
    const int i = broadcast_input(*node);
    if (i < 0) continue;
    const Node& broadcast = *node->inputs()[static_cast<std::size_t>(i)].node;
    if (broadcast.requested_device() != node->requested_device()) continue;
    std::vector<Output> inputs = node->inputs();
    inputs[static_cast<std::size_t>(i)] = broadcast.inputs()[0];
    Node* small = add_like(f.graph, *node, cat(node->name(), "/before_broadcast"), node->op(),
                           inputs, node->attrs());
    for (Node* before : broadcast.control_inputs()) f.graph.add_control_input(small, before);
    Node* large =
        add_like(f.graph, broadcast, cat(node->name(), "/broadcast"), *op,
                 {{small, 0}, broadcast.inputs()[1]},
                 {{"T", small->output_dtype(0)}, {"Tidx", broadcast.attr<DType>("Tidx")}});
    f.graph.set_output_shape(large, 0, node->output_shape(0));
    wait_for(f, users[static_cast<std::size_t>(node->id())], node, small);
    f.replace({node, 0}, {large, 0});
    changed = true;
  }
  if (changed) prune(f);
  return changed;
}

}  // namespace tandem::passes
