#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/function.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Builds graphs with TensorFlow 1 control flow, as an import of a GraphDef does.
class FlowBuilder {
 public:
  Output arg(DType dtype, const PartialShape& shape = PartialShape::unknown());
  /// `after`: what ties the constant to a branch or loop.
  Output constant(const Array& value, std::vector<Node*> after = {});
  Node* add(std::string_view op, std::vector<Output> inputs, AttrMap attrs = {},
            std::vector<Node*> after = {}, const std::string& name = "");
  Output add1(std::string_view op, std::vector<Output> inputs, AttrMap attrs = {},
              std::vector<Node*> after = {}) {
    return {add(op, std::move(inputs), std::move(attrs), std::move(after)), 0};
  }

  Output enter(Output value, const std::string& frame, bool is_constant = false,
               int parallel_iterations = 10);
  /// The value of a loop variable: its Merge, whose second input close() fills in.
  Output loop_variable(Output entered);
  void close(Output variable, Output next_value);

  /// The function of what was built; the builder is empty afterwards.
  FunctionRef finish(std::vector<Output> results, std::vector<Node*> control_results = {});

  Graph graph;
  std::vector<Node*> args;
};

std::vector<Tensor> run(const FunctionRef& function, std::vector<Tensor> args);
float run_float(const FunctionRef& function, std::vector<Tensor> args);
std::int32_t run_int(const FunctionRef& function, std::vector<Tensor> args);

}  // namespace tandem
