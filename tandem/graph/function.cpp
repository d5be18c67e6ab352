#include "tandem/graph/function.h"

#include <algorithm>

#include "tandem/core/error.h"

namespace tandem {

Function::Function(std::string name, Graph body, std::vector<Node*> args,
                   std::vector<Output> results, std::vector<Node*> control_results,
                   bool may_optimize)
    : name_(std::move(name)),
      body_(std::move(body)),
      args_(std::move(args)),
      results_(std::move(results)),
      control_results_(std::move(control_results)),
      may_optimize_(may_optimize) {
  stateful_ = std::any_of(body_.nodes().begin(), body_.nodes().end(),
                          [](const auto& n) { return n->op().traits.stateful; });
}

Function::~Function() = default;

std::vector<DType> Function::arg_dtypes() const {
  std::vector<DType> types;
  for (const Node* arg : args_) types.push_back(arg->output_dtype(0));
  return types;
}

std::vector<DType> Function::result_dtypes() const {
  std::vector<DType> types;
  for (const Output& r : results_) types.push_back(r.node->output_dtype(r.index));
  return types;
}

std::vector<PartialShape> Function::result_shapes() const {
  std::vector<PartialShape> shapes;
  for (const Output& r : results_) shapes.push_back(r.node->output_shape(r.index));
  return shapes;
}

std::string Function::to_string() const {
  std::string text = cat("function ", name_, "\n", body_.to_string(), "return ");
  for (std::size_t i = 0; i < results_.size(); ++i) {
    text += cat(i ? ", " : "", results_[i].node->name(), ":", results_[i].index);
  }
  return text + "\n";
}

}  // namespace tandem
