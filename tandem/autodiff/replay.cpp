#include "tandem/autodiff/replay.h"

#include <memory>
#include <unordered_map>

#include "tandem/graph/function.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/function_calls.h"

namespace tandem {
namespace {

// Attributes of a node less those that follow from its inputs, which a call gives again.
AttrMap given_attrs(const Node& node) {
  AttrMap attrs;
  for (const auto& [name, value] : node.attrs()) {
    const AttrDef* def = node.op().find_attr(name);
    if (!def || !def->inferred) attrs.set(name, value);
  }
  return attrs;
}

std::vector<Tensor> call_node(const Node& node, std::span<const Tensor> inputs) {
  if (node.kind() == NodeKind::kCall) {
    // The differentiable form may have been called already: what was meant is the function itself.
    const AttrValue* original = node.attrs().find("_original");
    return call_function(original ? *original->get_if<FunctionRef>() : node.attr<FunctionRef>("f"), inputs);
  }
  return call(node.op(), inputs, given_attrs(node));
}

}  // namespace

std::vector<Tensor> replay(const Function& function, std::span<const Tensor> args) {
  std::unordered_map<const Node*, std::vector<Tensor>> values;
  for (std::size_t i = 0; i < function.args().size(); ++i) values[function.args()[i]] = {args[i]};
  for (const Node* node : function.body().topological_order()) {
    if (node->kind() == NodeKind::kArg) continue;
    if (node->kind() == NodeKind::kConst) {
      values[node] = {Tensor(*node->attr<std::shared_ptr<const Array>>("value"))};
      continue;
    }
    std::vector<Tensor> inputs;
    for (const Output& in : node->inputs()) inputs.push_back(values.at(in.node).at(static_cast<std::size_t>(in.index)));
    std::vector<Tensor> outputs = call_node(*node, inputs);
    // A differentiable call returns further values for its gradient, of which this body knows nothing.
    values[node] = std::move(outputs);
  }
  std::vector<Tensor> results;
  for (const Output& r : function.results()) results.push_back(values.at(r.node).at(static_cast<std::size_t>(r.index)));
  return results;
}

}  // namespace tandem
