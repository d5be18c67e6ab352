#include "tandem/cli/inspect/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tandem::cli {
namespace {

// Calls `f` with a function from positions to elements as double; false if the dtype has none.
template <class F>
bool with_numbers(const Array& array, F f) {
  const auto typed = [&](auto element) {
    using T = decltype(element);
    const T* data = array.data<T>();
    f([data](std::int64_t i) {
      if constexpr (std::is_arithmetic_v<T>)
        return static_cast<double>(data[i]);
      else
        return static_cast<double>(static_cast<float>(data[i]));
    });
    return true;
  };
  switch (array.dtype()) {
    case DType::kFloat: return typed(float());
    case DType::kDouble: return typed(double());
    case DType::kHalf: return typed(Half());
    case DType::kBFloat16: return typed(BFloat16());
    case DType::kInt8: return typed(std::int8_t());
    case DType::kInt16: return typed(std::int16_t());
    case DType::kInt32: return typed(std::int32_t());
    case DType::kInt64: return typed(std::int64_t());
    case DType::kUint8: return typed(std::uint8_t());
    case DType::kUint16: return typed(std::uint16_t());
    case DType::kUint32: return typed(std::uint32_t());
    case DType::kUint64: return typed(std::uint64_t());
    case DType::kBool: return typed(bool());
    default: return false;
  }
}

}  // namespace

std::optional<Statistics> statistics_of(const Array& array) {
  Statistics s;
  s.min = std::numeric_limits<double>::infinity();
  s.max = -s.min;
  double squares = 0;
  const bool numbers = with_numbers(array, [&](auto at) {
    for (std::int64_t i = 0; i < array.num_elements(); ++i) {
      const double x = at(i);
      if (std::isnan(x)) {
        ++s.nan;
      } else if (std::isinf(x)) {
        ++s.infinite;
      } else {  // Welford's mean and sum of squares
        ++s.finite;
        s.zeros += x == 0 ? 1 : 0;
        s.min = std::min(s.min, x);
        s.max = std::max(s.max, x);
        const double before = x - s.mean;
        s.mean += before / static_cast<double>(s.finite);
        squares += before * (x - s.mean);
      }
    }
  });
  if (!numbers) return std::nullopt;
  if (s.finite == 0) s.min = s.max = 0;
  if (s.finite > 0) s.deviation = std::sqrt(squares / static_cast<double>(s.finite));
  return s;
}

std::optional<double> largest_difference(const Array& a, const Array& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return std::nullopt;
  double largest = 0;
  const bool numbers = with_numbers(a, [&](auto at_a) {
    with_numbers(b, [&](auto at_b) {
      for (std::int64_t i = 0; i < a.num_elements(); ++i) {
        const double x = at_a(i), y = at_b(i);
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        const double difference = std::abs(x - y);
        largest = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                         : std::max(largest, difference);
      }
    });
  });
  return numbers ? std::optional(largest) : std::nullopt;
}

}  // namespace tandem::cli
