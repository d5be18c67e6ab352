#include "tandem/graph/function.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/branch_gradient.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/functional_calls.h"
#include "tandem/ops/internal/result_shapes.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem::internal {
namespace {

void if_shape(InferenceContext& c) {
  set_results_of_branches(c,
                          {c.attr<FunctionRef>("then_branch"), c.attr<FunctionRef>("else_branch")});
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
    .traits = {.kind = NodeKind::kIf, .stateful = true, .host_inputs = 1},
    .flops = flops::branches,
    .doc = "then_branch(input) if cond is true, else else_branch(input).",
}};

const OpRegistration kStatelessIf{{
    .name = "StatelessIf",
    .inputs = "cond: Tcond, input: Tin",
    .outputs = "output: Tout",
    .attrs = TANDEM_IF_ATTRS,
    .shape = if_shape,
    .gradient = if_gradient,
    .traits = {.kind = NodeKind::kIf, .host_inputs = 1},
    .flops = flops::branches,
    .doc = "As If, for branches without side effects.",
}};

const OpRegistration kToBool{{
    .name = "ToBool",
    .inputs = "input: T",
    .outputs = "output: bool",
    .attrs = "T: type",
    .shape = shapes::scalar,
    .gradient = not_differentiable,
    .traits = {.host_inputs = 1, .host_outputs = 1},
    .doc = "Whether If and While take input for true: a scalar that is not zero or an empty "
           "string, any other tensor that is not empty.",
}};

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

std::vector<Tensor> call_op(const Tensor& pred, std::span<const Tensor> inputs,
                            const std::vector<FunctionRef>& branches) {
  return call_if_op(pred, inputs, branches[0], branches[1], {});
}

std::vector<Tensor> call_both(const Tensor& pred, std::span<const Tensor> inputs,
                              const std::vector<FunctionRef>& branches) {
  return call_if(pred, {inputs.begin(), inputs.end()}, branches[0], branches[1]);
}

void if_gradient(GradientContext& g) {
  branches_gradient(
      g, {g.attr<FunctionRef>("_original_then"), g.attr<FunctionRef>("_original_else")},
      {g.attr<FunctionRef>("then_branch"), g.attr<FunctionRef>("else_branch")}, call_op, call_both);
}

}  // namespace

std::vector<Tensor> call_if(const Tensor& pred, const std::vector<Tensor>& inputs,
                            const FunctionRef& then_branch, const FunctionRef& else_branch) {
  if (is_recording(inputs)) {
    const BranchGradient gradient({then_branch, else_branch});
    if (gradient.any()) {
      const std::vector<FunctionRef> forward = gradient.forward();
      std::vector<Tensor> outputs =
          call_if_op(pred, inputs, forward[0], forward[1],
                     {{"_original_then", then_branch}, {"_original_else", else_branch}});
      outputs.resize(then_branch->results().size());
      return outputs;
    }
  }
  return call_if_op(pred, inputs, then_branch, else_branch, {});
}

}  // namespace tandem::internal
