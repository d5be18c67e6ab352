#include "tandem/autodiff/custom_gradient.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/autodiff/internal/custom_call.h"
#include "tandem/core/error.h"
#include "tandem/graph/op_registry.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using Forward = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
using Backward = std::function<std::vector<Tensor>(std::span<const Tensor>, std::span<const Tensor>,
                                                   std::span<const Tensor>)>;

std::vector<Tensor> joined(std::initializer_list<std::span<const Tensor>> lists) {
  std::vector<Tensor> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// An output that is an input would be its own source: it gets an identity of its own.
std::vector<Tensor> run_forward(const Forward& forward, std::span<const Tensor> inputs) {
  const StopRecording quiet;
  std::vector<Tensor> outputs = forward(inputs);
  for (Tensor& out : outputs) {
    for (const Tensor& in : inputs) {
      if (out.is_same(in)) out = identity(out);
    }
  }
  return outputs;
}

std::vector<Tensor> with_zeros(std::span<const Tensor> grads, std::span<const Tensor> outputs) {
  std::vector<Tensor> filled(grads.begin(), grads.end());
  for (std::size_t i = 0; i < filled.size(); ++i) {
    if (filled[i].defined()) continue;
    filled[i] = outputs[i].dtype() == DType::kResource ? outputs[i] : zeros_like(outputs[i]);
  }
  return filled;
}

std::vector<Tensor> checked(std::vector<Tensor> gradients, std::size_t inputs) {
  if (gradients.size() != inputs) {
    throw InvalidArgumentError(cat("A custom gradient returned ", gradients.size(),
                                   " gradients for ", inputs, " inputs."));
  }
  return gradients;
}

struct CustomCall {
  FunctionRef forward;
  FunctionRef backward;
  std::int64_t inputs = 0;
};

// `args`: the inputs, what the backward function captured, what the forward function captured.
std::vector<Tensor> call_custom(const CustomCall& custom, std::span<const Tensor> args) {
  std::vector<Tensor> outputs;
  {
    const StopRecording quiet;
    const char* op = custom.forward->stateful() ? "StatefulPartitionedCall" : "PartitionedCall";
    outputs = raw_op(op, args,
                     {{"f", custom.forward},
                      {"Tout", custom.forward->result_dtypes()},
                      {kCustomGradientAttr, custom.backward},
                      {kCustomInputsAttr, custom.inputs}});
  }
  const auto n = static_cast<std::size_t>(custom.inputs);
  const std::vector<Tensor> inputs(args.begin(), args.begin() + custom.inputs);
  const std::size_t captures = custom.backward->args().size() - n - 2 * outputs.size();
  const auto kept = args.subspan(n, captures);
  const std::vector<Tensor> captured(kept.begin(), kept.end());
  record_custom_gradient(
      inputs, outputs, [=, backward = custom.backward](std::span<const Tensor> grads) {
        const std::vector<Tensor> given = with_zeros(grads, outputs);
        return call_function(backward, joined({inputs, outputs, given, captured}));
      });
  return outputs;
}

std::vector<Tensor> trace_custom(const Forward& forward, const Backward& backward,
                                 const std::vector<Tensor>& inputs) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  const auto add = [&](DType dtype, const PartialShape& shape) {
    dtypes.push_back(dtype);
    shapes.push_back(shape);
  };
  for (const Tensor& in : inputs) add(in.dtype(), in.partial_shape());
  const std::size_t n = inputs.size();
  const auto run = [&](std::span<const Tensor> args) {
    return run_forward(forward, args.first(n));
  };
  // Traced for its outputs, which the gradient's signature needs; once more with its arguments.
  const ConcreteFunction sketch = trace_function("custom_forward", dtypes, shapes, run);
  const std::vector<DType> output_dtypes = sketch.function()->result_dtypes();
  const std::vector<PartialShape> output_shapes = sketch.function()->result_shapes();
  const std::size_t m = output_dtypes.size();
  for (int twice = 0; twice < 2; ++twice) {
    for (std::size_t i = 0; i < m; ++i) add(output_dtypes[i], output_shapes[i]);
  }
  const ConcreteFunction gradient =
      trace_function("custom_backward", dtypes, shapes, [&](std::span<const Tensor> args) {
        std::vector<Tensor> grads =
            checked(backward(args.first(n), args.subspan(n, m), args.subspan(n + m)), n);
        for (std::size_t i = 0; i < n; ++i) {
          if (!grads[i].defined()) grads[i] = zeros_like(args[i]);
        }
        return grads;
      });
  dtypes.resize(n);
  shapes.resize(n);
  for (const Tensor& t : gradient.captures()) add(t.dtype(), t.partial_shape());
  const ConcreteFunction whole = trace_function("custom_forward", dtypes, shapes, run);
  return call_custom({whole.function(), gradient.function(), static_cast<std::int64_t>(n)},
                     joined({inputs, gradient.captures(), whole.captures()}));
}

}  // namespace

namespace internal {
bool is_tracing() { return thread_context().trace != nullptr; }
// What the function computed is recorded by tapes as usual, for gradients of the gradient. Its
// value must be another tensor than the output, whose gradient takes the way of the user's own.
Tensor separate_output(const Tensor& value) { return identity(value); }
}  // namespace internal

bool has_custom_gradient(const Node& call) {
  return call.attrs().find(kCustomGradientAttr) != nullptr;
}

std::vector<Tensor> repeat_custom_call(const Node& call, std::span<const Tensor> args) {
  return call_custom({call.attr<FunctionRef>("f"), call.attr<FunctionRef>(kCustomGradientAttr),
                      call.attr<std::int64_t>(kCustomInputsAttr)},
                     args);
}

std::vector<Tensor> custom_gradient(const Forward& forward, const Backward& backward,
                                    const std::vector<Tensor>& inputs) {
  if (thread_context().trace) return trace_custom(forward, backward, inputs);
  const std::vector<Tensor> outputs = run_forward(forward, inputs);
  record_custom_gradient(inputs, outputs, [=](std::span<const Tensor> grads) {
    return checked(backward(inputs, outputs, with_zeros(grads, outputs)), inputs.size());
  });
  return outputs;
}

}  // namespace tandem
