#include "tandem/runtime/function_calls.h"

#include <atomic>

#include "tandem/core/error.h"
#include "tandem/graph/function.h"

namespace tandem {
namespace {

constinit std::atomic<FunctionDifferentiator> g_differentiator{nullptr};

}  // namespace

void set_function_differentiator(FunctionDifferentiator differentiator) {
  g_differentiator.store(differentiator, std::memory_order_release);
}

PartialShape FunctionGradient::backward_arg_shape(std::size_t index) const {
  return backward->args().at(index)->output_shape(0);
}

std::shared_ptr<const FunctionGradient> differentiate(const FunctionRef& function) {
  const FunctionDifferentiator differentiator = g_differentiator.load(std::memory_order_acquire);
  if (!differentiator) {
    throw UnimplementedError(cat("Function '", function->name(),
                                 "' cannot be differentiated: this build of Tandem has no ",
                                 "autodiff module."));
  }
  return differentiator(function);
}

}  // namespace tandem
