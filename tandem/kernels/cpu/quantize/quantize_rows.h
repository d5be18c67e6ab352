#pragma once

#include <cstdint>

// Rows of the quantizing ops, in vectors. `x` and `to` do not overlap.

namespace tandem::cpu {

enum class Rounding { kDown, kToEven, kAwayFromZero };

/// The nearest of the integers [lowest, highest] to (min(max(x, min), max) - from) * scale + shift,
/// rounded. NaN becomes the lowest.
struct QuantizeRow {
  Rounding rounding;
  float min, max, from, scale, shift;
  float lowest, highest;
};
void quantize_row(const QuantizeRow& by, const float* x, std::int32_t* to, std::int64_t n);

/// Quantizes a row to round(x * scale) - offset + lowest, rounded away from zero, in double.
struct QuantizeWideRow {
  double scale, offset;
  double lowest, highest;
};
void quantize_row(const QuantizeWideRow& by, const float* x, std::int32_t* to, std::int64_t n);

/// Rounded to levels: min(max(x, min), max) * scale, rounded to even or half up, * inverse. NaN
/// stays.
template <class W>
struct RoundTripRow {
  W min, max, scale, inverse;
  bool half_up;
};
void round_trip_row(const RoundTripRow<float>& by, const float* x, float* to, std::int64_t n);
void round_trip_row(const RoundTripRow<double>& by, const double* x, double* to, std::int64_t n);

/// Widens [low, high] to hold the elements of the row; NaN does not count.
void extend_range(const float* x, std::int64_t n, float& low, float& high);
void extend_range(const double* x, std::int64_t n, double& low, double& high);

}  // namespace tandem::cpu
