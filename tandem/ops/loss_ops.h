#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::nn {

/// -sum(labels * log_softmax(logits)) along `axis`, which is dropped. `labels` are probabilities of
/// the logits' dtype; the two broadcast. Differentiable with respect to both.
TANDEM_EXPORT Tensor softmax_cross_entropy_with_logits(Tensor labels, Tensor logits,
                                                       std::int64_t axis = -1);

/// Softmax cross entropy for labels that are class numbers: `logits` [d0, ..., classes], `labels`
/// int32 or int64 [d0, ...]. A label outside [0, classes) throws InvalidArgumentError naming it.
TANDEM_EXPORT Tensor sparse_softmax_cross_entropy_with_logits(Tensor labels, Tensor logits);

/// Cross entropy of independent probabilities: max(x, 0) - x * labels + log(1 + exp(-|x|)). Same
/// shapes.
TANDEM_EXPORT Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);

/// sum(t^2) / 2, a scalar.
TANDEM_EXPORT Tensor l2_loss(Tensor t);

/// For each row of `predictions` [batch, classes] whether targets[row] is among the k largest; ties
/// at the border count. Rows with a target out of range or non-finite values in question give
/// false.
TANDEM_EXPORT Tensor in_top_k(Tensor targets, Tensor predictions, std::int64_t k);

}  // namespace tandem::nn
