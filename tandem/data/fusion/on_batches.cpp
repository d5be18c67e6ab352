#include <algorithm>
#include <map>
#include <utility>

#include "tandem/data/fusion/stage_fusion.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/op_def.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::data {
namespace {

// Whether the result at one place is the same, to the bit, however many places are computed at
// once.
bool by_element(const Node& node) {
  const Exactness exact = node.op().traits.exact;
  return exact == Exactness::kAlways ||
         (exact == Exactness::kFloating && is_floating(node.output_dtype(0)));
}

// Which nodes' values differ from element to element; nothing if one of them could not be computed
// for many elements at a time.
bool find_varying(const ElementProgram& program, std::map<const Node*, bool>& varies) {
  const Function& function = *program.function().function();
  if (function.stateful() || !function.control_results().empty()) return false;
  for (std::size_t i = 0; i < function.args().size(); ++i) {
    const bool varying = i < program.input_spec().size();
    varies[function.args()[i]] = varying;
    if (varying && !program.input_spec()[i].shape.is_fully_known()) return false;
  }
  for (const Node* node : function.body().topological_order()) {
    if (node->kind() == NodeKind::kArg) continue;
    if (node->kind() == NodeKind::kConst) {
      varies[node] = false;
      continue;
    }
    if (!by_element(*node) || !node->control_inputs().empty()) return false;
    const PartialShape& shape = node->output_shape(0);
    if (!shape.is_fully_known()) return false;
    // The first axis of batches has to meet: what varies has the rank of the result.
    bool varying = false;
    for (const Output& in : node->inputs()) {
      const PartialShape& given = in.node->output_shape(in.index);
      if (!given.has_rank() || given.rank() > shape.rank()) return false;
      if (!varies[in.node]) continue;
      varying = true;
      if (given.rank() != shape.rank()) return false;
    }
    varies[node] = varying;
  }
  return std::all_of(function.results().begin(), function.results().end(),
                     [&](const Output& r) { return varies[r.node]; });
}

}  // namespace

bool cannot_fail(const ElementProgram& program) {
  const auto known = [](const PartialShape& shape) { return shape.is_fully_known(); };
  const Function& function = *program.function().function();
  const auto safe = [&](const Node* node) {
    if (node->kind() == NodeKind::kArg || node->kind() == NodeKind::kConst) return true;
    return by_element(*node) && known(node->output_shape(0));
  };
  const auto nodes = function.body().topological_order();
  return std::all_of(nodes.begin(), nodes.end(), safe) &&
         std::all_of(program.input_spec().begin(), program.input_spec().end(),
                     [&](const TensorSpec& s) { return known(s.shape); });
}

Element emit(const ElementProgram& program, const Element& args) {
  const Function& function = *program.function().function();
  std::map<std::pair<const Node*, int>, Tensor> made;
  for (std::size_t i = 0; i < function.args().size(); ++i) {
    const std::size_t given = program.input_spec().size();
    made[{function.args()[i], 0}] = i < given ? args[i] : program.function().captures()[i - given];
  }
  for (const Node* node : function.body().topological_order()) {
    if (node->kind() == NodeKind::kArg) continue;
    if (node->kind() == NodeKind::kConst) {
      made[{node, 0}] = Tensor(*node->attr<std::shared_ptr<const Array>>("value"));
      continue;
    }
    std::vector<Tensor> inputs;
    for (const Output& in : node->inputs()) inputs.push_back(made.at({in.node, in.index}));
    std::vector<Tensor> outputs = call(node->op(), inputs, node->attrs());
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      made[{node, static_cast<int>(o)}] = std::move(outputs[o]);
    }
  }
  Element results;
  for (const Output& r : function.results()) results.push_back(made.at({r.node, r.index}));
  return results;
}

std::shared_ptr<const ElementProgram> compose(const ElementProgram& first,
                                              const ElementProgram& second) {
  const ElementFn both([&](const Element& args) { return emit(second, emit(first, args)); });
  return std::make_shared<const ElementProgram>(both, first.input_spec());
}

std::shared_ptr<const ElementProgram> on_batches(const ElementProgram& program) {
  std::map<const Node*, bool> varies;
  if (!find_varying(program, varies)) return nullptr;
  ElementSpec batches = program.input_spec();
  for (TensorSpec& s : batches) {
    std::vector<std::int64_t> dims = s.shape.dims();
    dims.insert(dims.begin(), PartialShape::kUnknown);
    s.shape = PartialShape(std::move(dims));
  }
  const ElementFn same([&program](const Element& args) { return emit(program, args); });
  return std::make_shared<const ElementProgram>(same, batches);
}

}  // namespace tandem::data
