#pragma once

#include <string_view>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem::nn {

/// The largest value of each window of `ksize` moved by `strides`. `input` is [batch, height,
/// width, channels], or [batch, channels, height, width] with data_format "NCHW". Explicit padding
/// counts as minus infinity. Real numbers.
TANDEM_EXPORT Tensor max_pool2d(Tensor input, Size2D ksize, Size2D strides, const Padding& padding,
                                StringView data_format = "NHWC");

/// The mean of each window; padding does not count. half, bfloat16, float, double; "SAME" or
/// "VALID".
TANDEM_EXPORT Tensor avg_pool2d(Tensor input, Size2D ksize, Size2D strides, const Padding& padding,
                                StringView data_format = "NHWC");

}  // namespace tandem::nn
