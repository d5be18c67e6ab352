#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Calls a function through the dispatch seam, as a PartitionedCall (StatefulPartitionedCall if it
/// is stateful). If a tape listens, the call is of the function's differentiable form, which also
/// returns what the gradient needs.
TANDEM_EXPORT std::vector<Tensor> call_function(const FunctionRef& function,
                                                std::span<const Tensor> args);

/// A function and how to differentiate it. `forward` returns the function's results and then what
/// `backward` needs; `backward` takes the gradients of the differentiable results and then those
/// values, and returns the gradients of the differentiable arguments. Made by autodiff, which
/// registers itself here: runtime calls functions but knows no tape.
struct FunctionGradient {
  FunctionRef forward;
  FunctionRef backward;
  std::vector<int> result_grads;  ///< results whose gradients `backward` takes, in order
  std::vector<int> arg_grads;     ///< arguments whose gradients it returns, in order

  /// What is known of the shape of one of `backward`'s arguments.
  TANDEM_EXPORT PartialShape backward_arg_shape(std::size_t index) const;
};
using FunctionDifferentiator =
    std::shared_ptr<const FunctionGradient> (*)(const FunctionRef& function);
TANDEM_EXPORT void set_function_differentiator(FunctionDifferentiator differentiator);
/// Null if no result depends differentiably on an argument. Throws UnimplementedError without the
/// autodiff module.
TANDEM_EXPORT std::shared_ptr<const FunctionGradient> differentiate(const FunctionRef& function);

}  // namespace tandem
