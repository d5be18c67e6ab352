#include "tandem/ops/quantize_functions.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::quantization {
namespace {

AttrMap attrs_of(const FakeQuantOptions& options) {
  return {{"num_bits", options.num_bits}, {"narrow_range", options.narrow_range}};
}

FakeQuantGradients three(std::vector<Tensor> outputs) {
  return {std::move(outputs[0]), std::move(outputs[1]), std::move(outputs[2])};
}

}  // namespace

Tensor fake_quant_with_min_max_args_gradient(Tensor gradients, Tensor inputs, float min, float max,
                                             const FakeQuantOptions& options) {
  AttrMap attrs = attrs_of(options);
  attrs.set("min", min);
  attrs.set("max", max);
  return raw_op("FakeQuantWithMinMaxArgsGradient", {std::move(gradients), std::move(inputs)},
                attrs)[0];
}

FakeQuantGradients fake_quant_with_min_max_vars_gradient(Tensor gradients, Tensor inputs,
                                                         Tensor min, Tensor max,
                                                         const FakeQuantOptions& options) {
  return three(raw_op("FakeQuantWithMinMaxVarsGradient",
                      {std::move(gradients), std::move(inputs), std::move(min), std::move(max)},
                      attrs_of(options)));
}

FakeQuantGradients fake_quant_with_min_max_vars_per_channel_gradient(
    Tensor gradients, Tensor inputs, Tensor min, Tensor max, const FakeQuantOptions& options) {
  return three(raw_op("FakeQuantWithMinMaxVarsPerChannelGradient",
                      {std::move(gradients), std::move(inputs), std::move(min), std::move(max)},
                      attrs_of(options)));
}

Tensor quantize_and_dequantize_v2(Tensor input, Tensor input_min, Tensor input_max,
                                  const QuantizeOptions& options) {
  return quantize_and_dequantize(std::move(input), std::move(input_min), std::move(input_max),
                                 options);
}

Quantized quantized_concat(std::int64_t concat_dim, const std::vector<Tensor>& values,
                           const std::vector<Tensor>& input_mins,
                           const std::vector<Tensor>& input_maxes) {
  if (values.empty() || values.size() != input_mins.size() || values.size() != input_maxes.size()) {
    throw InvalidArgumentError(cat("td::quantization::quantized_concat: ", values.size(),
                                   " values, ", input_mins.size(), " minima and ",
                                   input_maxes.size(),
                                   " maxima; there must be one of each for "
                                   "every value, and one at least."));
  }
  const DType dtype = values[0].dtype();
  const Tensor low = minimum(reduce_min(stack(input_mins)), 0.0);
  const Tensor high = reduce_max(stack(input_maxes));
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // What has the range already comes back as it was: its integers are exact in float.
    const Tensor number = dequantize(values[i], input_mins[i], input_maxes[i]);
    parts.push_back(quantize(number, low, high, dtype, {}, "HALF_AWAY_FROM_ZERO", 0.0f).output);
  }
  // The bits are joined as integers of their size.
  const DType bits = dtype == DType::kQuint8 || dtype == DType::kQint8 ? uint8 : int32;
  for (Tensor& part : parts) part = bitcast(part, bits);
  return {bitcast(concat(parts, concat_dim), dtype), low, high};
}

}  // namespace tandem::quantization
