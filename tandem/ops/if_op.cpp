#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/functional_calls.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/resource_variable_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/gradient_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem::internal {
namespace {

void if_shape(InferenceContext& c) {
  const auto then_shapes = c.attr<FunctionRef>("then_branch")->result_shapes();
  const auto else_shapes = c.attr<FunctionRef>("else_branch")->result_shapes();
  for (int i = 0; i < c.num_outputs(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    c.set_output(i, then_shapes.at(at).relax(else_shapes.at(at)));
  }
}

void if_gradient(GradientContext& g);

#define TANDEM_IF_ATTRS                                                                    \
  "Tcond: type; Tin: list(type); Tout: list(type); then_branch: func; else_branch: func; " \
  "output_shapes: list(shape) = []"

const OpRegistration kIf{{
    .name = "If",
    .inputs = "cond: Tcond, input: Tin",
    .outputs = "output: Tout",
    .attrs = TANDEM_IF_ATTRS,
    .shape = if_shape,
    .gradient = if_gradient,
    .traits = {.kind = NodeKind::kIf, .stateful = true},
    .doc = "then_branch(input) if cond is true, else else_branch(input).",
}};

const OpRegistration kStatelessIf{{
    .name = "StatelessIf",
    .inputs = "cond: Tcond, input: Tin",
    .outputs = "output: Tout",
    .attrs = TANDEM_IF_ATTRS,
    .shape = if_shape,
    .gradient = if_gradient,
    .traits = {.kind = NodeKind::kIf},
    .doc = "As If, for branches without side effects.",
}};

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

// `dtype` is the gradient's: a handle does not tell what its variable holds.
Tensor zero_gradient(const Tensor& arg, DType dtype) {
  return arg.dtype() == DType::kResource ? zeros_like(read_variable(arg, dtype)) : zeros_like(arg);
}

// The differentiable forms of both branches, made to return the same values: the results, what the
// first branch's gradient needs, what the second's needs.
struct IfGradient {
  IfGradient(const FunctionRef& then_function, const FunctionRef& else_function)
      : branches{then_function, else_function},
        gradients{differentiate(then_function), differentiate(else_function)},
        extras{extra_dtypes(gradients[0], then_function),
               extra_dtypes(gradients[1], else_function)} {
    for (const auto& g : gradients) {
      if (!g) continue;
      result_grads = g->result_grads;
      for (int a : g->arg_grads) {
        if (std::find(arg_grads.begin(), arg_grads.end(), a) == arg_grads.end())
          arg_grads.push_back(a);
      }
    }
    std::sort(arg_grads.begin(), arg_grads.end());
  }

  bool any() const { return gradients[0] || gradients[1]; }

  FunctionRef forward(int branch) const {
    const FunctionRef& f = branches[branch];
    return trace(f->name() + "_forward", f->arg_dtypes(), arg_shapes(f),
                 [&](std::span<const Tensor> args) {
                   std::vector<Tensor> all =
                       call_function(gradients[branch] ? gradients[branch]->forward : f, args);
                   const auto results = static_cast<std::ptrdiff_t>(f->results().size());
                   std::vector<Tensor> out(all.begin(), all.begin() + results);
                   for (int b = 0; b < 2; ++b) {
                     if (b == branch) {
                       out.insert(out.end(), all.begin() + results, all.end());
                     } else {
                       for (DType t : extras[b]) out.push_back(placeholder(t));
                     }
                   }
                   return out;
                 });
  }

  // Takes the results' gradients, both branches' values and the arguments.
  FunctionRef backward(int branch) const {
    const FunctionRef& f = branches[branch];
    std::vector<DType> dtypes;
    std::vector<PartialShape> shapes;
    const auto add = [&](DType t, const PartialShape& s) {
      dtypes.push_back(t);
      shapes.push_back(s);
    };
    for (int r : result_grads)
      add(f->result_dtypes()[static_cast<std::size_t>(r)], PartialShape::unknown());
    for (const auto& list : extras) {
      for (DType t : list) add(t, PartialShape::unknown());
    }
    for (std::size_t i = 0; i < f->args().size(); ++i) add(f->arg_dtypes()[i], arg_shapes(f)[i]);
    return trace(f->name() + "_backward", dtypes, shapes, [&](std::span<const Tensor> in) {
      const auto grads = in.subspan(0, result_grads.size());
      const auto mine =
          in.subspan(grads.size() + (branch == 0 ? 0 : extras[0].size()), extras[branch].size());
      const auto args = in.subspan(grads.size() + extras[0].size() + extras[1].size());
      std::vector<Tensor> found(args.size());
      if (const auto& g = gradients[branch]) {
        std::vector<Tensor> inputs(grads.begin(), grads.end());
        inputs.insert(inputs.end(), mine.begin(), mine.end());
        std::vector<Tensor> values = call_function(g->backward, inputs);
        for (std::size_t i = 0; i < values.size(); ++i)
          found[static_cast<std::size_t>(g->arg_grads[i])] = values[i];
      }
      std::vector<Tensor> out;
      for (int a : arg_grads) {
        const Tensor& value = found[static_cast<std::size_t>(a)];
        out.push_back(value.defined()
                          ? value
                          : zero_gradient(args[static_cast<std::size_t>(a)], gradient_dtype(a)));
      }
      return out;
    });
  }

  FunctionRef branches[2];
  std::shared_ptr<const FunctionGradient> gradients[2];
  std::vector<DType> extras[2];
  std::vector<int> result_grads;
  std::vector<int> arg_grads;

 private:
  static std::vector<PartialShape> arg_shapes(const FunctionRef& f) {
    std::vector<PartialShape> shapes;
    for (const Node* arg : f->args()) shapes.push_back(arg->output_shape(0));
    return shapes;
  }
  DType gradient_dtype(int arg) const {
    for (const auto& g : gradients) {
      if (!g) continue;
      const auto at = std::find(g->arg_grads.begin(), g->arg_grads.end(), arg);
      if (at == g->arg_grads.end()) continue;
      return g->backward->result_dtypes()[static_cast<std::size_t>(at - g->arg_grads.begin())];
    }
    return DType::kInvalid;
  }
  static FunctionRef trace(
      const std::string& name, const std::vector<DType>& dtypes,
      const std::vector<PartialShape>& shapes,
      const std::function<std::vector<Tensor>(std::span<const Tensor>)>& body) {
    const ConcreteFunction f = trace_function(name, dtypes, shapes, body);
    if (!f.captures().empty())
      throw InternalError(cat("function ", name, " of a branch captured outside tensors"));
    return f.function();
  }
};

std::vector<Tensor> call_if_op(const Tensor& pred, std::span<const Tensor> inputs,
                               const FunctionRef& then_branch, const FunctionRef& else_branch,
                               AttrMap attrs) {
  std::vector<Tensor> all{pred};
  all.insert(all.end(), inputs.begin(), inputs.end());
  attrs.set("then_branch", then_branch);
  attrs.set("else_branch", else_branch);
  attrs.set("Tout", then_branch->result_dtypes());
  const bool stateful = then_branch->stateful() || else_branch->stateful();
  return call(stateful ? kIf : kStatelessIf, all, attrs);
}

void if_gradient(GradientContext& g) {
  IfGradient gradient(g.attr<FunctionRef>("_original_then"), g.attr<FunctionRef>("_original_else"));
  std::vector<Tensor> outputs = g.outputs_;
  const std::vector<Tensor> args(g.inputs_.begin() + 1, g.inputs_.end());
  bool second =
      false;  // a gradient also arrives at what the first gradient used: see call_gradient
  for (std::size_t i = gradient.branches[0]->results().size(); i < outputs.size(); ++i) {
    second = second || g.grad_or_undefined(static_cast<int>(i)).defined();
  }
  if (second) {
    gradient = IfGradient(g.attr<FunctionRef>("then_branch"), g.attr<FunctionRef>("else_branch"));
    outputs = call_if_op(g.input(0), args, gradient.forward(0), gradient.forward(1), {});
  }
  std::vector<Tensor> inputs;
  for (int r : gradient.result_grads) inputs.push_back(g.grad(r));
  const auto results = static_cast<std::ptrdiff_t>(gradient.branches[0]->results().size());
  inputs.insert(inputs.end(), outputs.begin() + results, outputs.end());
  inputs.insert(inputs.end(), args.begin(), args.end());
  const std::vector<Tensor> grads =
      call_if(g.input(0), inputs, gradient.backward(0), gradient.backward(1));
  for (std::size_t i = 0; i < gradient.arg_grads.size(); ++i)
    g.set(gradient.arg_grads[i] + 1, grads[i]);
}

}  // namespace

std::vector<Tensor> call_if(const Tensor& pred, const std::vector<Tensor>& inputs,
                            const FunctionRef& then_branch, const FunctionRef& else_branch) {
  if (is_recording(inputs)) {
    const IfGradient gradient(then_branch, else_branch);
    if (gradient.any()) {
      std::vector<Tensor> outputs =
          call_if_op(pred, inputs, gradient.forward(0), gradient.forward(1),
                     {{"_original_then", then_branch}, {"_original_else", else_branch}});
      outputs.resize(then_branch->results().size());
      return outputs;
    }
  }
  return call_if_op(pred, inputs, then_branch, else_branch, {});
}

}  // namespace tandem::internal
