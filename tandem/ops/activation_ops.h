#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

// Functions applied to every element, and softmax along an axis. Unless said otherwise they take
// half, bfloat16, float and double of any shape and return the same dtype and shape.

namespace tandem::nn {

/// max(x, 0); also integers. NaN stays NaN.
TANDEM_EXPORT Tensor relu(Tensor x);
/// min(max(x, 0), 6); also integers.
TANDEM_EXPORT Tensor relu6(Tensor x);
/// x if x > 0, else alpha * x.
TANDEM_EXPORT Tensor leaky_relu(Tensor x, float alpha = 0.2f);
/// x if x > 0, else exp(x) - 1.
TANDEM_EXPORT Tensor elu(Tensor x);
/// Scaled elu whose outputs keep mean 0 and variance 1 (Klambauer et al. 2017).
TANDEM_EXPORT Tensor selu(Tensor x);
/// x * P(X <= x) for a standard normal X; with `approximate` by a formula in tanh.
TANDEM_EXPORT Tensor gelu(const Tensor& x, bool approximate = false);
/// x * sigmoid(beta * x).
TANDEM_EXPORT Tensor swish(const Tensor& x, double beta = 1.0);
TANDEM_EXPORT Tensor silu(const Tensor& x, double beta = 1.0);
/// log(1 + exp(x)), without overflow.
TANDEM_EXPORT Tensor softplus(Tensor x);
/// x / (1 + |x|).
TANDEM_EXPORT Tensor softsign(Tensor x);

/// exp(x) / sum(exp(x)) along `axis`, without overflow. Throws InvalidArgumentError for a scalar or
/// an axis out of range.
TANDEM_EXPORT Tensor softmax(Tensor logits, std::int64_t axis = -1);
/// x - log(sum(exp(x))) along `axis`.
TANDEM_EXPORT Tensor log_softmax(Tensor logits, std::int64_t axis = -1);

}  // namespace tandem::nn
