#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/quantization_ops.h"
#include "tandem/ops/quantize_ops.h"
#include "tandem/runtime/tensor.h"

/// Functions of tf.quantization besides those that quantize: gradients by name, older names.
namespace tandem::quantization {

/// The gradient of fake_quant_with_min_max_args: that of the output where the input is in range,
/// else zero.
TANDEM_EXPORT Tensor fake_quant_with_min_max_args_gradient(Tensor gradients, Tensor inputs,
                                                           float min = -6, float max = 6,
                                                           const FakeQuantOptions& options = {});
struct FakeQuantGradients {
  Tensor backprops_wrt_input;
  Tensor backprop_wrt_min;
  Tensor backprop_wrt_max;
};
TANDEM_EXPORT FakeQuantGradients fake_quant_with_min_max_vars_gradient(
    Tensor gradients, Tensor inputs, Tensor min, Tensor max, const FakeQuantOptions& options = {});
TANDEM_EXPORT FakeQuantGradients fake_quant_with_min_max_vars_per_channel_gradient(
    Tensor gradients, Tensor inputs, Tensor min, Tensor max, const FakeQuantOptions& options = {});

/// quantize_and_dequantize, whose gradient passes only where the input is in the range.
TANDEM_EXPORT Tensor quantize_and_dequantize_v2(Tensor input, Tensor input_min, Tensor input_max,
                                                const QuantizeOptions& options = {});

/// Quantized tensors joined along an axis, with a range that holds all of theirs and zero; integers
/// of other ranges are converted to it.
TANDEM_EXPORT Quantized quantized_concat(std::int64_t concat_dim, const std::vector<Tensor>& values,
                                         const std::vector<Tensor>& input_mins,
                                         const std::vector<Tensor>& input_maxes);

}  // namespace tandem::quantization
