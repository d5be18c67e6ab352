#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/result_shapes.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void call_shape(InferenceContext& c) {
  const std::vector<KnownValue> args = internal::known_args(c, 0);
  internal::set_results(c, internal::known_results(c, c.attr<FunctionRef>("f"), args));
}

bool any_gradient_after(const GradientContext& g, std::size_t first) {
  for (int i = static_cast<int>(first); i < g.num_outputs(); ++i) {
    if (g.grad_or_undefined(i).defined()) return true;
  }
  return false;
}

// The call recorded on a tape is one of the differentiable form: its last outputs are what the
// gradient needs. When a gradient arrives at those as well (a second derivative), that form itself
// is differentiated, and called again for what its own gradient needs.
void call_gradient(GradientContext& g) {
  FunctionRef function = g.attr<FunctionRef>("_original");
  std::vector<Tensor> outputs = g.outputs_;
  auto gradient = differentiate(function);
  if (any_gradient_after(g, function->results().size())) {
    function = g.attr<FunctionRef>("f");
    gradient = differentiate(function);
    outputs = call_function(gradient->forward, g.inputs_);
  }
  for (int i = static_cast<int>(g.attr<FunctionRef>("_original")->results().size());
       i < g.num_outputs(); ++i) {
    if (g.output(i).dtype() == DType::kVariant && g.grad_or_undefined(i).defined()) {
      throw UnimplementedError(cat("Second derivatives through a loop that function '",
                                   function->name(),
                                   "' runs are not supported. Take them eagerly."));
    }
  }
  std::vector<Tensor> args;
  for (int result : gradient->result_grads) args.push_back(g.grad(result));
  args.insert(args.end(), outputs.begin() + static_cast<std::ptrdiff_t>(function->results().size()),
              outputs.end());
  const std::vector<Tensor> grads = call_function(gradient->backward, args);
  for (std::size_t i = 0; i < gradient->arg_grads.size(); ++i)
    g.set(gradient->arg_grads[i], grads[i]);
}

const OpRegistration kPartitionedCall{{
    .name = "PartitionedCall",
    .inputs = "args: Tin",
    .outputs = "output: Tout",
    .attrs = "Tin: list(type); Tout: list(type); f: func; config: string = ''; config_proto: "
             "string = ''; "
             "executor_type: string = ''",
    .shape = call_shape,
    .gradient = call_gradient,
    .traits = {.kind = NodeKind::kCall},
    .flops = flops::call,
    .doc = "Returns f(args), where the body of f has no side effects.",
}};

const OpRegistration kStatefulPartitionedCall{{
    .name = "StatefulPartitionedCall",
    .inputs = "args: Tin",
    .outputs = "output: Tout",
    .attrs = "Tin: list(type); Tout: list(type); f: func; config: string = ''; config_proto: "
             "string = ''; "
             "executor_type: string = ''",
    .shape = call_shape,
    .gradient = call_gradient,
    .traits = {.kind = NodeKind::kCall, .stateful = true},
    .flops = flops::call,
    .doc = "Returns f(args), where the body of f may read and change state.",
}};

}  // namespace
}  // namespace tandem
