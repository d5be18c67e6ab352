#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/loss_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/norm_ops.h"
#include "tandem/ops/pool_ops.h"
#include "tandem/runtime/tensor.h"

// All of td::nn, and the functions that belong to none of the groups above.

namespace tandem::nn {

/// Adds a vector to the channels of `value`: the last axis, or axis 1 with data_format "NCHW". Rank
/// 2 or more ("NCHW": 3 or more). Numbers of one dtype.
TANDEM_EXPORT Tensor bias_add(Tensor value, Tensor bias, StringView data_format = "NHWC");

struct DropoutOptions {
  Tensor noise_shape =
      {};  ///< shape of the kept/dropped decisions, broadcast to x's; x's own if undefined
  std::optional<std::int64_t> seed = {};  ///< see td::random::set_seed
};
/// Sets elements to zero with probability `rate` in [0, 1) and scales the others by 1 / (1 - rate).
TANDEM_EXPORT Tensor dropout(const Tensor& x, double rate, const DropoutOptions& options = {});

namespace experimental {
/// dropout with a seed of two numbers, int32 or int64: equal seeds drop the same elements.
TANDEM_EXPORT Tensor stateless_dropout(const Tensor& x, double rate, const Tensor& seed,
                                       const Tensor& noise_shape = {});
}  // namespace experimental
/// Rows of `params` by number: gather(params, ids). Throws InvalidArgumentError for ids out of
/// range.
TANDEM_EXPORT Tensor embedding_lookup(const Tensor& params, const Tensor& ids);

}  // namespace tandem::nn
