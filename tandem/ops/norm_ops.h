#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem::nn {

struct FusedBatchNormOptions {
  Tensor mean = {};      ///< running mean; needed for inference, and for training unless
                         ///< exponential_avg_factor is 1
  Tensor variance = {};  ///< running variance, likewise
  float epsilon = 0.001f;
  String data_format = "NHWC";  ///< or "NCHW"
  bool is_training = true;
  float exponential_avg_factor = 1.0f;  ///< share of this batch in the running averages returned
};
struct FusedBatchNormResult {
  Tensor y;
  Tensor mean;      ///< the batch's, mixed with the running one by exponential_avg_factor
  Tensor variance;  ///< likewise, unbiased
};

/// Normalises each channel of a rank 4 input to mean 0 and variance 1, then scales and shifts it.
/// `x` is half, bfloat16 or float; `scale`, `offset`, means and variances are float vectors of one
/// value a channel. Training uses the batch's moments, inference those given.
TANDEM_EXPORT FusedBatchNormResult fused_batch_norm(Tensor x, Tensor scale, Tensor offset,
                                                    const FusedBatchNormOptions& options = {});

/// (x - mean) / sqrt(variance + epsilon) * scale + offset, all broadcast. `offset` and `scale` may
/// be undefined tensors.
TANDEM_EXPORT Tensor batch_normalization(const Tensor& x, const Tensor& mean,
                                         const Tensor& variance, const Tensor& offset,
                                         const Tensor& scale, double variance_epsilon);

struct Moments {
  Tensor mean;
  Tensor variance;
};
/// Mean and (biased) variance over `axes`. half and bfloat16 are computed in float.
TANDEM_EXPORT Moments moments(const Tensor& x, const std::vector<std::int64_t>& axes,
                              bool keepdims = false);

/// x / sqrt(max(sum(x^2), epsilon)), the sum over `axes` (all axes when empty).
TANDEM_EXPORT Tensor l2_normalize(const Tensor& x, const std::vector<std::int64_t>& axes,
                                  double epsilon = 1e-12);

struct LocalResponseNormalizationOptions {
  std::int64_t depth_radius = 5;
  float bias = 1.0f;
  float alpha = 1.0f;
  float beta = 0.5f;
};
/// x / (bias + alpha * sum of squares over 2 * depth_radius + 1 neighbouring channels) ^ beta.
/// `input` is rank 4, NHWC.
TANDEM_EXPORT Tensor
local_response_normalization(Tensor input, const LocalResponseNormalizationOptions& options = {});

}  // namespace tandem::nn
