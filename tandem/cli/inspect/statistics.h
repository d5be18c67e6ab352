#pragma once

#include <cstdint>
#include <optional>

#include "tandem/core/array.h"

namespace tandem::cli {

/// Describes the finite elements, and counts the others.
struct Statistics {
  double min = 0, max = 0, mean = 0, deviation = 0;
  std::int64_t finite = 0, nan = 0, infinite = 0, zeros = 0;
};

/// None for dtypes without an order: strings, complex numbers and such.
std::optional<Statistics> statistics_of(const Array& array);

/// The largest difference of two elements; none where dtypes or shapes differ or there is no order.
/// A NaN equals a NaN, and is infinitely far from anything else.
std::optional<double> largest_difference(const Array& a, const Array& b);

}  // namespace tandem::cli
