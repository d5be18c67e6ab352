#include <memory>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/autodiff/internal/replay.h"
#include "tandem/core/error.h"
#include "tandem/graph/function.h"
#include "tandem/runtime/function_calls.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem {
namespace {

// Lists have gradients too: lists of the gradients of their elements.
bool is_value(DType t) { return is_floating(t) || is_complex(t) || t == DType::kVariant; }

// The function's body is traced again under a tape. The gradient is traced as a function within
// that trace, so whatever it uses of the forward values it captures; those captures are what the
// forward function has to return besides.
std::shared_ptr<const FunctionGradient> make_gradient(const FunctionRef& function) {
  const OpRegistry& ops = Runtime::current().ops();
  auto gradient = std::make_shared<FunctionGradient>();
  Trace forward(ops, function->name() + "_forward", nullptr);
  ThreadContextScope forward_scope(tracing_context(forward));

  std::vector<Tensor> args, sources;
  for (const Node* arg : function->args()) {
    args.push_back(forward.add_arg(arg->output_dtype(0), arg->output_shape(0), arg->name()));
  }
  GradientTape tape({.persistent = true, .watch_accessed_variables = false});
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!is_differentiable(args[i].dtype())) continue;
    tape.watch(args[i]);
    sources.push_back(args[i]);
  }
  const std::vector<Tensor> results = replay(*function, args);
  tape.stop_recording();

  Trace backward(ops, function->name() + "_backward", &forward);
  std::vector<Tensor> grads;
  {
    ThreadContextScope backward_scope(tracing_context(backward));
    std::vector<Tensor> targets, output_grads;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!is_value(results[i].dtype())) continue;
      gradient->result_grads.push_back(static_cast<int>(i));
      targets.push_back(results[i]);
      output_grads.push_back(
          backward.add_arg(results[i].dtype(), results[i].partial_shape(), cat("grad_", i)));
    }
    if (targets.empty() || sources.empty()) return nullptr;
    const std::vector<Tensor> all = tape.gradient(targets, sources, output_grads);
    std::size_t next = 0;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (!is_differentiable(args[i].dtype())) continue;
      const Tensor& g = all[next++];
      if (!g.defined()) continue;
      gradient->arg_grads.push_back(static_cast<int>(i));
      grads.push_back(g);
    }
    if (grads.empty()) return nullptr;
    gradient->backward = backward.finish(grads);
  }
  std::vector<Tensor> returned = results;
  for (const Tensor& needed : backward.captures()) returned.push_back(needed);
  gradient->forward = forward.finish(returned);
  if (!forward.captures().empty()) {
    throw InternalError(
        cat("the gradient of function '", function->name(), "' depends on outside tensors"));
  }
  return gradient;
}

// An absent gradient is remembered too.
struct Remembered {
  std::shared_ptr<const FunctionGradient> gradient;
};

std::shared_ptr<const FunctionGradient> differentiate_function(const FunctionRef& function) {
  return function
      ->derived<Remembered>(
          Function::kGradient,
          [&] { return std::make_shared<Remembered>(Remembered{make_gradient(function)}); })
      ->gradient;
}

const bool registered = [] {
  set_function_differentiator(&differentiate_function);
  return true;
}();

}  // namespace
}  // namespace tandem
