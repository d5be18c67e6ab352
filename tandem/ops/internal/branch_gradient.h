#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tandem/graph/function.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/gradient_context.h"
#include "tandem/runtime/tensor.h"

namespace tandem::internal {

/// The differentiable forms of the branches of an If or Case, made to return the same values: the
/// results, then what each branch's gradient needs, in the order of the branches (placeholders for
/// those that did not run).
class BranchGradient {
 public:
  explicit BranchGradient(std::vector<FunctionRef> branches);

  /// False if no result of any branch depends differentiably on an argument.
  bool any() const;
  /// The branches to call instead.
  std::vector<FunctionRef> forward() const;
  /// Functions of the results' gradients, all branches' values and the arguments.
  std::vector<FunctionRef> backward() const;
  std::size_t num_results() const { return branches_[0]->results().size(); }
  const std::vector<int>& result_grads() const { return result_grads_; }
  const std::vector<int>& arg_grads() const { return arg_grads_; }

 private:
  FunctionRef forward(std::size_t branch) const;
  FunctionRef backward(std::size_t branch) const;
  DType gradient_dtype(int arg) const;

  std::vector<FunctionRef> branches_;
  std::vector<std::shared_ptr<const FunctionGradient>> gradients_;
  std::vector<std::vector<DType>> extras_;
  std::vector<int> result_grads_;
  std::vector<int> arg_grads_;
};

/// Calls an op that runs one of several functions, whose first input chooses which.
using CallBranches = std::vector<Tensor> (*)(const Tensor& choice, std::span<const Tensor> inputs,
                                             const std::vector<FunctionRef>& branches);

/// The gradient of such an op, called with `called` in place of `original` so that it is
/// differentiable. `call_op` calls the op as it is, `call` so that it is differentiable again.
void branches_gradient(GradientContext& g, const std::vector<FunctionRef>& original,
                       const std::vector<FunctionRef>& called, CallBranches call_op,
                       CallBranches call);

}  // namespace tandem::internal
