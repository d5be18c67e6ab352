#pragma once

#include <cstdint>

namespace tandem::cpu {

/// The numbers of a row of elements, each of which is rounded to levels of its own.
struct LevelRow {
  const float *low, *high;       ///< the least and the greatest level
  const float *scale, *inverse;  ///< what is between two levels
  const float* zero;             ///< the number of the level that is zero, counted from `low`
};

/// Rounds n elements.
void round_to_levels(const LevelRow& levels, const float* x, float* to, std::int64_t n);

}  // namespace tandem::cpu
