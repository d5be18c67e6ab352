#include "tandem/ops/internal/branch_gradient.h"

#include <algorithm>
#include <functional>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/resource_variable_ops.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::internal {
namespace {

// Something to stand for a value that only the other branch makes.
Tensor placeholder(DType dtype) {
  if (dtype == DType::kVariant) return list_ops::empty_tensor_list(DType::kFloat);
  if (dtype == DType::kResource) {
    throw UnimplementedError(
        "td::cond: the gradient of a branch that makes a resource is not supported. Make the "
        "variable "
        "outside of the branch.");
  }
  return zeros({}, dtype);
}

std::vector<DType> extra_dtypes(const std::shared_ptr<const FunctionGradient>& gradient,
                                const FunctionRef& function) {
  if (!gradient) return {};
  const std::vector<DType> all = gradient->forward->result_dtypes();
  return {all.begin() + static_cast<std::ptrdiff_t>(function->results().size()), all.end()};
}

// `dtype` is the gradient's: a handle does not say what its variable holds.
Tensor zero_gradient(const Tensor& arg, DType dtype) {
  return arg.dtype() == DType::kResource ? zeros_like(read_variable(arg, dtype)) : zeros_like(arg);
}

std::vector<PartialShape> arg_shapes(const FunctionRef& f) {
  std::vector<PartialShape> shapes;
  for (const Node* arg : f->args()) shapes.push_back(arg->output_shape(0));
  return shapes;
}

FunctionRef trace(const std::string& name, const std::vector<DType>& dtypes,
                  const std::vector<PartialShape>& shapes,
                  const std::function<std::vector<Tensor>(std::span<const Tensor>)>& body) {
  const ConcreteFunction f = trace_function(name, dtypes, shapes, body);
  if (!f.captures().empty())
    throw InternalError(cat("function ", name, " of a branch captured outside tensors"));
  return f.function();
}

}  // namespace

BranchGradient::BranchGradient(std::vector<FunctionRef> branches) : branches_(std::move(branches)) {
  for (const FunctionRef& f : branches_) {
    gradients_.push_back(differentiate(f));
    extras_.push_back(extra_dtypes(gradients_.back(), f));
    const auto& g = gradients_.back();
    if (!g) continue;
    result_grads_ = g->result_grads;
    for (int a : g->arg_grads) {
      if (std::find(arg_grads_.begin(), arg_grads_.end(), a) == arg_grads_.end())
        arg_grads_.push_back(a);
    }
  }
  std::sort(arg_grads_.begin(), arg_grads_.end());
}

bool BranchGradient::any() const {
  return std::any_of(gradients_.begin(), gradients_.end(),
                     [](const auto& g) { return g != nullptr; });
}

std::vector<FunctionRef> BranchGradient::forward() const {
  std::vector<FunctionRef> all;
  for (std::size_t b = 0; b < branches_.size(); ++b) all.push_back(forward(b));
  return all;
}

std::vector<FunctionRef> BranchGradient::backward() const {
  std::vector<FunctionRef> all;
  for (std::size_t b = 0; b < branches_.size(); ++b) all.push_back(backward(b));
  return all;
}

FunctionRef BranchGradient::forward(std::size_t branch) const {
  const FunctionRef& f = branches_[branch];
  return trace(f->name() + "_forward", f->arg_dtypes(), arg_shapes(f),
               [&](std::span<const Tensor> args) {
                 std::vector<Tensor> all =
                     call_function(gradients_[branch] ? gradients_[branch]->forward : f, args);
                 const auto results = static_cast<std::ptrdiff_t>(f->results().size());
                 std::vector<Tensor> out(all.begin(), all.begin() + results);
                 for (std::size_t b = 0; b < branches_.size(); ++b) {
                   if (b == branch) {
                     out.insert(out.end(), all.begin() + results, all.end());
                   } else {
                     for (DType t : extras_[b]) out.push_back(placeholder(t));
                   }
                 }
                 return out;
               });
}

FunctionRef BranchGradient::backward(std::size_t branch) const {
  const FunctionRef& f = branches_[branch];
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  const auto add = [&](DType t, const PartialShape& s) {
    dtypes.push_back(t);
    shapes.push_back(s);
  };
  for (int r : result_grads_)
    add(f->result_dtypes()[static_cast<std::size_t>(r)], PartialShape::unknown());
  std::size_t before_mine = result_grads_.size(), before_args = result_grads_.size();
  for (std::size_t b = 0; b < branches_.size(); ++b) {
    for (DType t : extras_[b]) add(t, PartialShape::unknown());
    if (b < branch) before_mine += extras_[b].size();
    before_args += extras_[b].size();
  }
  for (std::size_t i = 0; i < f->args().size(); ++i) add(f->arg_dtypes()[i], arg_shapes(f)[i]);
  return trace(f->name() + "_backward", dtypes, shapes, [&](std::span<const Tensor> in) {
    const auto grads = in.subspan(0, result_grads_.size());
    const auto mine = in.subspan(before_mine, extras_[branch].size());
    const auto args = in.subspan(before_args);
    std::vector<Tensor> found(args.size());
    if (const auto& g = gradients_[branch]) {
      std::vector<Tensor> inputs(grads.begin(), grads.end());
      inputs.insert(inputs.end(), mine.begin(), mine.end());
      std::vector<Tensor> values = call_function(g->backward, inputs);
      for (std::size_t i = 0; i < values.size(); ++i)
        found[static_cast<std::size_t>(g->arg_grads[i])] = values[i];
    }
    std::vector<Tensor> out;
    for (int a : arg_grads_) {
      const Tensor& value = found[static_cast<std::size_t>(a)];
      out.push_back(value.defined()
                        ? value
                        : zero_gradient(args[static_cast<std::size_t>(a)], gradient_dtype(a)));
    }
    return out;
  });
}

DType BranchGradient::gradient_dtype(int arg) const {
  for (const auto& g : gradients_) {
    if (!g) continue;
    const auto at = std::find(g->arg_grads.begin(), g->arg_grads.end(), arg);
    if (at == g->arg_grads.end()) continue;
    return g->backward->result_dtypes()[static_cast<std::size_t>(at - g->arg_grads.begin())];
  }
  return DType::kInvalid;
}

void branches_gradient(GradientContext& g, const std::vector<FunctionRef>& original,
                       const std::vector<FunctionRef>& called, CallBranches call_op,
                       CallBranches call) {
  BranchGradient gradient(original);
  std::vector<Tensor> outputs = g.outputs_;
  const std::vector<Tensor> args(g.inputs_.begin() + 1, g.inputs_.end());
  bool second =
      false;  // a gradient also arrives at what the first gradient used: see call_gradient
  for (std::size_t i = gradient.num_results(); i < outputs.size(); ++i)
    second = second || g.grad_or_undefined(static_cast<int>(i)).defined();
  if (second) {
    gradient = BranchGradient(called);
    outputs = call_op(g.input(0), args, gradient.forward());
  }
  std::vector<Tensor> inputs;
  for (int r : gradient.result_grads()) inputs.push_back(g.grad(r));
  const auto results = static_cast<std::ptrdiff_t>(gradient.num_results());
  inputs.insert(inputs.end(), outputs.begin() + results, outputs.end());
  inputs.insert(inputs.end(), args.begin(), args.end());
  const std::vector<Tensor> grads = call(g.input(0), inputs, gradient.backward());
  for (std::size_t i = 0; i < gradient.arg_grads().size(); ++i)
    g.set(gradient.arg_grads()[i] + 1, grads[i]);
}

}  // namespace tandem::internal
