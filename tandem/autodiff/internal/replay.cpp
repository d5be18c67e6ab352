#include "tandem/autodiff/internal/replay.h"

#include <memory>
#include <unordered_map>

#include "tandem/autodiff/internal/custom_call.h"
#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/ops/internal/functional_calls.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/function_calls.h"

namespace tandem {
namespace {

// Attributes of a node less those that follow from its inputs, which a call gives again.
AttrMap given_attrs(const Node& node) {
  AttrMap attrs;
  for (const auto& [name, value] : node.attrs()) {
    if (name == "_class") continue;  // it names a node that is called otherwise there
    const AttrDef* def = node.op().find_attr(name);
    if (!def || !def->inferred) attrs.set(name, value);
  }
  return attrs;
}

// Calls of functions go through what makes them differentiable. A call that already returns what a
// gradient needs is called as what it is: a function with more results.
std::vector<Tensor> call_node(const Node& node, std::span<const Tensor> inputs) {
  const std::vector<Tensor> all(inputs.begin(), inputs.end());
  switch (node.kind()) {
    case NodeKind::kCall:
      if (has_custom_gradient(node)) return repeat_custom_call(node, inputs);
      if (const AttrValue* branches = node.attrs().find("branches")) {
        return internal::call_case(all[0], inputs.subspan(1),
                                   *branches->get_if<std::vector<FunctionRef>>());
      }
      return call_function(node.attr<FunctionRef>("f"), inputs);
    case NodeKind::kIf:
      return internal::call_if(all[0], {all.begin() + 1, all.end()},
                               node.attr<FunctionRef>("then_branch"),
                               node.attr<FunctionRef>("else_branch"));
    case NodeKind::kWhile:
      return internal::call_while(all, node.attr<FunctionRef>("cond"),
                                  node.attr<FunctionRef>("body"));
    default: return call(node.op(), inputs, given_attrs(node));
  }
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
    if (node->kind() == NodeKind::kNextIteration) {
      throw UnimplementedError(
          cat("Function '", function.name(), "' holds a loop of TensorFlow 1 control flow (",
              node->describe(), "), which cannot be differentiated here. Use td::while_loop."));
    }
    std::vector<Tensor> inputs;
    for (const Output& in : node->inputs())
      inputs.push_back(values.at(in.node).at(static_cast<std::size_t>(in.index)));
    values[node] = call_node(*node, inputs);
  }
  std::vector<Tensor> results;
  for (const Output& r : function.results())
    results.push_back(values.at(r.node).at(static_cast<std::size_t>(r.index)));
  return results;
}

}  // namespace tandem
