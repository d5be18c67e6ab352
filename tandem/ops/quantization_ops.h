#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem::quantization {

// Values rounded to the levels that integers of a few bits can represent, as they would be after
// quantising and back: for training that knows of it. The range is widened or moved a little, so
// that zero is a level. Gradients pass where the value lies inside the range.

struct FakeQuantOptions {
  std::int64_t num_bits = 8;  ///< 2 to 16
  bool narrow_range = false;  ///< without the lowest level
};
/// float.
TANDEM_EXPORT Tensor fake_quant_with_min_max_args(Tensor inputs, float min = -6, float max = 6,
                                                  const FakeQuantOptions& options = {});
/// Like fake_quant_with_min_max_args, for scalars min and max that have gradients too.
TANDEM_EXPORT Tensor fake_quant_with_min_max_vars(Tensor inputs, Tensor min, Tensor max,
                                                  const FakeQuantOptions& options = {});
/// Like fake_quant_with_min_max_args, for vectors min and max: one range for each entry of the last
/// axis.
TANDEM_EXPORT Tensor fake_quant_with_min_max_vars_per_channel(Tensor inputs, Tensor min, Tensor max,
                                                              const FakeQuantOptions& options = {});

struct QuantizeOptions {
  bool signed_input = true;
  std::int64_t num_bits = 8;
  bool range_given = false;  ///< else the range is that of the values
  String round_mode = "HALF_TO_EVEN";
  bool narrow_range = false;
  std::int64_t axis = -1;  ///< -1, or the axis each of whose entries has a range of its own
};
/// Quantizes floating values and back, with levels at equal distances on both sides of zero.
/// input_min and input_max: scalars, or vectors if there is an axis.
TANDEM_EXPORT Tensor quantize_and_dequantize(Tensor input, Tensor input_min, Tensor input_max,
                                             const QuantizeOptions& options = {});

}  // namespace tandem::quantization
