#pragma once

#include <vector>

#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// The sizes of x, an int32 scalar each: constants where they are known, so that what is made with
/// `stack` of them keeps that knowledge. The rank must be known.
std::vector<Tensor> scalar_sizes(const Tensor& x);

/// x in the shape that its scalar sizes say; `sizes` as scalar_sizes gives them, perhaps others.
Tensor reshape_to(const Tensor& x, const std::vector<Tensor>& sizes);

}  // namespace tandem::keras::internal
