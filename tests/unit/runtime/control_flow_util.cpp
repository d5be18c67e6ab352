#include "tests/unit/runtime/control_flow_util.h"

namespace tandem {

Output FlowBuilder::arg(DType dtype, const PartialShape& shape) {
  Graph::NodeSpec spec;
  spec.op = &Runtime::current().ops().of_kind(NodeKind::kArg);
  spec.name = "arg";
  spec.attrs = AttrMap{{"T", dtype}, {"index", static_cast<std::int64_t>(args.size())}};
  Node* node = graph.add(std::move(spec));
  graph.set_output_shape(node, 0, shape);
  args.push_back(node);
  return {node, 0};
}

Output FlowBuilder::constant(const Array& value, std::vector<Node*> after) {
  return add1("Const", {}, {{"value", value}, {"dtype", value.dtype()}}, std::move(after));
}

Node* FlowBuilder::add(std::string_view op, std::vector<Output> inputs, AttrMap attrs,
                       std::vector<Node*> after, const std::string& name) {
  Graph::NodeSpec spec;
  spec.op = &Runtime::current().ops().get(op);
  spec.name = name;
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.control_inputs = std::move(after);
  return graph.add(std::move(spec));
}

Output FlowBuilder::enter(Output value, const std::string& frame, bool is_constant,
                          int parallel_iterations) {
  return add1("Enter", {value},
              {{"frame_name", frame},
               {"is_constant", is_constant},
               {"parallel_iterations", parallel_iterations}});
}

Output FlowBuilder::loop_variable(Output entered) { return add1("Merge", {entered, {}}); }

void FlowBuilder::close(Output variable, Output next_value) {
  graph.set_input(variable.node, 1, add1("NextIteration", {next_value}));
}

FunctionRef FlowBuilder::finish(std::vector<Output> results, std::vector<Node*> control_results) {
  return std::make_shared<const Function>("flow", std::move(graph), std::move(args),
                                          std::move(results), std::move(control_results));
}

std::vector<Tensor> run(const FunctionRef& function, std::vector<Tensor> args) {
  return call_function(function, args);
}

float run_float(const FunctionRef& function, std::vector<Tensor> args) {
  return run(function, std::move(args)).at(0).item<float>();
}

std::int32_t run_int(const FunctionRef& function, std::vector<Tensor> args) {
  return run(function, std::move(args)).at(0).item<std::int32_t>();
}

}  // namespace tandem
