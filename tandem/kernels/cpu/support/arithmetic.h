#pragma once

#include <cstdint>
#include <type_traits>

#include "tandem/kernels/cpu/support/number_types.h"

// Sums, differences, products and comparisons of numbers of any type.

namespace tandem::cpu {

/// What arithmetic with T is done in: float for the 16-bit types, unsigned integers (which wrap)
/// for integers.
template <class T, class = void>
struct ArithmeticOf {
  using type = T;
};
template <>
struct ArithmeticOf<Half> {
  using type = float;
};
template <>
struct ArithmeticOf<BFloat16> {
  using type = float;
};
template <class T>
struct ArithmeticOf<T, std::enable_if_t<std::is_integral_v<T>>> {
  // Small unsigned types would be promoted to int, whose products may overflow.
  using type = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
};
template <class T>
using Arithmetic = typename ArithmeticOf<T>::type;

template <class T>
T add(T a, T b) {
  using A = Arithmetic<T>;
  return static_cast<T>(static_cast<A>(a) + static_cast<A>(b));
}
template <class T>
T subtract(T a, T b) {
  using A = Arithmetic<T>;
  return static_cast<T>(static_cast<A>(a) - static_cast<A>(b));
}
template <class T>
T multiply(T a, T b) {
  using A = Arithmetic<T>;
  return static_cast<T>(static_cast<A>(a) * static_cast<A>(b));
}
/// a < b, for real types.
template <class T>
bool less(T a, T b) {
  if constexpr (is_float16<T>) {
    return static_cast<float>(a) < static_cast<float>(b);
  } else {
    return a < b;
  }
}

}  // namespace tandem::cpu
