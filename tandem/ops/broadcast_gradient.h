#pragma once

#include <utility>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Undoes broadcasting, for gradients: sums `gradient` over the axes along which a value of the
/// shape of `like` was repeated, so that the result has like's shape. Static when the shapes are
/// known, else through BroadcastGradientArgs.
TANDEM_EXPORT Tensor sum_to_shape_of(Tensor gradient, const Tensor& like);

/// The gradient where `like` was broadcast with nothing but `other`: an unknown size of like's that
/// meets a size of 1, or none, was not repeated, which spares traced functions the dynamic way.
TANDEM_EXPORT Tensor sum_to_shape_of(Tensor gradient, const Tensor& like, const Tensor& other);

/// The axes along which values of shapes s0 and s1 (int32 or int64 vectors) are repeated when they
/// broadcast together.
TANDEM_EXPORT std::pair<Tensor, Tensor> broadcast_gradient_args(Tensor s0, Tensor s1);

}  // namespace tandem
