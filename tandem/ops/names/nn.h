#pragma once

// Names of tf.nn that are declared elsewhere: see tandem/ops/names/math.h.

#include "tandem/ops/gather_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/math_functions.h"
#include "tandem/ops/nn_functions.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::nn {

using math::approx_max_k;
using math::approx_min_k;
using math::zero_fraction;
using tandem::sigmoid;
using tandem::space_to_batch_nd;
using tandem::tanh;
using tandem::top_k;

/// space_to_batch_nd.
inline Tensor space_to_batch(Tensor input, const IntList& block_shape, Tensor paddings) {
  return space_to_batch_nd(std::move(input), block_shape, std::move(paddings));
}
/// local_response_normalization.
inline Tensor lrn(Tensor input, const LocalResponseNormalizationOptions& options = {}) {
  return local_response_normalization(std::move(input), options);
}

}  // namespace tandem::nn
