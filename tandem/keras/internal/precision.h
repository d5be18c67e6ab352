#pragma once

#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Half precision as float32, other dtypes as they are: for sums that would lose too much.
Tensor in_full_precision(Tensor x);

/// Converts predictions; masks and logits attached to them are then attached to the
/// result.
Tensor predictions_in_full_precision(const Tensor& y_pred);

}  // namespace tandem::keras::internal
