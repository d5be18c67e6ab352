#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem::quantization {

struct QuantizationMode {
  /// "MIN_COMBINED" spreads all integers over the range, "MIN_FIRST" does so with zero kept exact,
  /// "SCALED" multiplies only, which keeps zero at zero.
  std::string mode = "MIN_COMBINED";
  bool narrow_range = false;  ///< without the lowest integer; SCALED only
  std::int64_t axis = -1;     ///< -1, or the axis each of whose entries has a range of its own
};

struct Quantized {
  Tensor output;
  Tensor output_min;  ///< the range that the integers stand for
  Tensor output_max;
};
/// float values as integers of dtype qint8, quint8, qint16, quint16 or qint32. round_mode:
/// "HALF_AWAY_FROM_ZERO", or for SCALED "HALF_TO_EVEN".
TANDEM_EXPORT Quantized quantize(Tensor input, Tensor min_range, Tensor max_range, DType dtype,
                                 const QuantizationMode& mode = {},
                                 const String& round_mode = "HALF_AWAY_FROM_ZERO",
                                 float ensure_minimum_range = 0.01f);
/// The reverse, as float or bfloat16.
TANDEM_EXPORT Tensor dequantize(Tensor input, Tensor min_range, Tensor max_range,
                                const QuantizationMode& mode = {}, DType dtype = float32);

}  // namespace tandem::quantization
