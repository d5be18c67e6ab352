#include <algorithm>

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

void case_shape(InferenceContext& c) {
  const auto& branches = c.attr<std::vector<FunctionRef>>("branches");
  if (branches.empty()) c.fail("needs at least one branch.");
  set_results_of_branches(c, branches);
}

void case_gradient(GradientContext& g);

#define TANDEM_CASE_ATTRS                                                    \
  "Tin: list(type); Tout: list(type); branches: list(func); output_shapes: " \
  "list(shape) = []"

const OpRegistration kCase{{
    .name = "Case",
    .inputs = "branch_index: int32, input: Tin",
    .outputs = "output: Tout",
    .attrs = TANDEM_CASE_ATTRS,
    .shape = case_shape,
    .gradient = case_gradient,
    .traits = {.kind = NodeKind::kCall, .stateful = true, .host_inputs = 1},
    .flops = flops::branches,
    .doc = "branches[branch_index](input); the last branch serves all other indices.",
}};

const OpRegistration kStatelessCase{{
    .name = "StatelessCase",
    .inputs = "branch_index: int32, input: Tin",
    .outputs = "output: Tout",
    .attrs = TANDEM_CASE_ATTRS,
    .shape = case_shape,
    .gradient = case_gradient,
    .traits = {.kind = NodeKind::kCall, .host_inputs = 1},
    .flops = flops::branches,
    .doc = "As Case, for branches without side effects.",
}};

std::vector<Tensor> call_case_op(const Tensor& index, std::span<const Tensor> inputs,
                                 const std::vector<FunctionRef>& branches, AttrMap attrs) {
  std::vector<Tensor> all{index};
  all.insert(all.end(), inputs.begin(), inputs.end());
  attrs.set("branches", branches);
  attrs.set("Tout", branches[0]->result_dtypes());
  const bool stateful = std::any_of(branches.begin(), branches.end(),
                                    [](const FunctionRef& f) { return f->stateful(); });
  return call(stateful ? kCase : kStatelessCase, all, attrs);
}

std::vector<Tensor> call_op(const Tensor& index, std::span<const Tensor> inputs,
                            const std::vector<FunctionRef>& branches) {
  return call_case_op(index, inputs, branches, {});
}

void case_gradient(GradientContext& g) {
  branches_gradient(g, g.attr<std::vector<FunctionRef>>("_original"),
                    g.attr<std::vector<FunctionRef>>("branches"), call_op, call_case);
}

}  // namespace

std::vector<Tensor> call_case(const Tensor& index, std::span<const Tensor> inputs,
                              const std::vector<FunctionRef>& branches) {
  if (is_recording(inputs)) {
    const BranchGradient gradient(branches);
    if (gradient.any()) {
      std::vector<Tensor> outputs =
          call_case_op(index, inputs, gradient.forward(), {{"_original", branches}});
      outputs.resize(branches[0]->results().size());
      return outputs;
    }
  }
  return call_case_op(index, inputs, branches, {});
}

}  // namespace tandem::internal
