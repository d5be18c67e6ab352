#pragma once

#include "tandem/keras/reduction.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// A loss' values, weighted and reduced. Weights and mask may be undefined.
Tensor reduce_values(Tensor values, const Tensor& sample_weight, const Tensor& mask,
                     Reduction reduction);

/// The weights with 0 where the mask says so; what is undefined changes nothing.
Tensor masked_weight(const Tensor& sample_weight, const Tensor& mask);

/// What a mean needs to know of a batch: the sum of one value for each example, and the number (or
/// weight) of the examples; both float scalars.
struct WeightedSum {
  Tensor sum;
  Tensor count;
};
WeightedSum weighted_sum(Tensor values, const Tensor& sample_weight);

}  // namespace tandem::keras::internal
