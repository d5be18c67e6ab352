#include "tandem/io/internal/gradient_import.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/autodiff/internal/custom_call.h"
#include "tandem/core/error.h"
#include "tandem/graph/op_registry.h"
#include "tandem/io/internal/add_node.h"
#include "tandem/io/internal/stand_in.h"

namespace tandem::io {
namespace {

class FunctionBody {
 public:
  explicit FunctionBody(const OpRegistry& ops) : ops_(ops) {}

  Output add_arg(DType dtype, const PartialShape& shape) {
    Node* arg =
        add_node(graph, ops_, ops_.of_kind(NodeKind::kArg).name.c_str(), cat("arg_", args.size()),
                 {}, {{"T", base_dtype(dtype)}, {"index", args.size()}});
    graph.set_output_shape(arg, 0, shape);
    args.push_back(arg);
    return {arg, 0};
  }
  Output add_arg(Output like) {
    return add_arg(like.node->output_dtype(like.index), like.node->output_shape(like.index));
  }
  FunctionRef finish(const std::string& name, std::vector<Node*> effects = {}) {
    return std::make_shared<const Function>(name, std::move(graph), std::move(args),
                                            std::move(results), std::move(effects));
  }

  Graph graph;
  std::vector<Node*> args;
  std::vector<Output> results;

 private:
  const OpRegistry& ops_;
};

const char* call_op(const Function& function) {
  return function.stateful() ? "StatefulPartitionedCall" : "PartitionedCall";
}

std::vector<Output> outputs_of(Node* node) {
  std::vector<Output> outputs;
  for (int i = 0; i < node->num_outputs(); ++i) outputs.push_back({node, i});
  return outputs;
}

// The function of (inputs, outputs, output gradients, captures) that autodiff calls.
FunctionRef make_backward(const OpRegistry& ops, const Graph::NodeSpec& spec, std::size_t inputs,
                          const std::vector<Output>& outputs, const ImportedGradient& gradient,
                          const FunctionRef& function) {
  FunctionBody body(ops);
  std::vector<Output> given, grads, captures, in;
  for (std::size_t i = 0; i < inputs; ++i) in.push_back(body.add_arg(spec.inputs[i]));
  for (const Output& out : outputs) body.add_arg(out);
  for (const Output& out : outputs) grads.push_back(body.add_arg(out));
  for (std::size_t i = inputs; i < spec.inputs.size(); ++i)
    captures.push_back(body.add_arg(spec.inputs[i]));
  if (!function) {
    std::vector<DType> dtypes;
    for (const Output& input : in) {
      const DType dtype = input.node->output_dtype(0);
      dtypes.push_back(dtype == DType::kResource ? DType::kFloat : dtype);
    }
    Graph::NodeSpec missing;
    missing.op = &stand_in_op();
    missing.name = "gradient_that_the_file_lacks";
    missing.attrs = AttrMap{{"Tin", std::vector<DType>{}},
                            {"Tout", dtypes},
                            {kUnsupportedAttr, "the file does not hold this custom gradient"}};
    body.results = outputs_of(body.graph.add(std::move(missing)));
    return body.finish(spec.name + "_backward");
  }
  if (gradient.takes_inputs) given = in;
  given.insert(given.end(), grads.begin(), grads.end());
  given.insert(given.end(), captures.begin(), captures.end());
  std::vector<DType> dtypes;
  for (const Output& value : given) dtypes.push_back(value.node->output_dtype(value.index));
  if (dtypes != function->arg_dtypes()) {
    throw InvalidArgumentError(cat("The gradient '", function->name(), "' of node '", spec.name,
                                   "' takes ", AttrValue(function->arg_dtypes()).to_string(),
                                   " but would be given ", AttrValue(dtypes).to_string(), "."));
  }
  Node* call = add_node(body.graph, ops, call_op(*function), "gradient", given,
                        {{"f", function}, {"Tin", dtypes}, {"Tout", function->result_dtypes()}});
  int next = 0;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (gradient.gives.empty() || gradient.gives.at(i)) {
      if (next == call->num_outputs()) break;
      body.results.push_back({call, next++});
    } else if (in[i].node->output_dtype(0) == DType::kResource) {
      body.results.push_back({add_node(body.graph, ops, "Const", "none", {},
                                       {{"dtype", DType::kFloat}, {"value", Array::scalar(0.f)}}),
                              0});
    } else {
      body.results.push_back({add_node(body.graph, ops, "ZerosLike", "none", {in[i]}, {}), 0});
    }
  }
  if (body.results.size() != inputs || next != call->num_outputs()) {
    throw InvalidArgumentError(cat("The gradient '", function->name(), "' of node '", spec.name,
                                   "' returns ", function->results().size(), " values for ", inputs,
                                   " inputs."));
  }
  return body.finish(spec.name + "_backward",
                     function->stateful() ? std::vector<Node*>{call} : std::vector<Node*>{});
}

}  // namespace

Node* add_with_gradient(Graph& graph, const OpRegistry& ops, Graph::NodeSpec spec,
                        std::size_t inputs, const ImportedGradient& gradient,
                        const FunctionRef& function) {
  if (!gradient.gives.empty() && gradient.gives.size() != inputs) {
    throw InvalidArgumentError(cat("The gradient '", gradient.function, "' of node '", spec.name,
                                   "' is of ", gradient.gives.size(), " inputs, not ", inputs,
                                   "."));
  }
  FunctionBody body(ops);
  Graph::NodeSpec inner;
  inner.op = spec.op;
  inner.name = spec.name;
  inner.attrs = spec.attrs;
  inner.device = spec.device;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const Output arg = body.add_arg(spec.inputs[i]);
    if (i < inputs) inner.inputs.push_back(arg);
  }
  Node* node = body.graph.add(std::move(inner));
  body.results = outputs_of(node);
  const FunctionRef backward = make_backward(ops, spec, inputs, body.results, gradient, function);
  std::vector<Node*> effects;
  if (node->op().traits.stateful && !node->op().traits.reads_only) effects.push_back(node);
  const FunctionRef forward = body.finish(spec.name + "_forward", std::move(effects));
  Graph::NodeSpec call = std::move(spec);
  call.op = &ops.get(call_op(*forward));
  call.attrs = AttrMap{{"f", forward},
                       {"Tin", forward->arg_dtypes()},
                       {"Tout", forward->result_dtypes()},
                       {kCustomGradientAttr, backward},
                       {kCustomInputsAttr, inputs}};
  return graph.add(std::move(call));
}

}  // namespace tandem::io
