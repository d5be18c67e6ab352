#pragma once

#include <complex>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"

namespace tandem::cpu {

[[noreturn]] inline void throw_no_kernel(DType dtype, std::string_view op) {
  throw UnimplementedError(
      cat("There is no CPU kernel of ", op, " for dtype ", dtype, ". Use td::cast."));
}

/// Calls `f.template operator()<T>()` with the element type of a real number dtype.
template <class F>
void real_switch(DType dtype, std::string_view op, F&& f) {
  switch (base_dtype(dtype)) {
    case DType::kFloat: return f.template operator()<float>();
    case DType::kDouble: return f.template operator()<double>();
    case DType::kHalf: return f.template operator()<Half>();
    case DType::kBFloat16: return f.template operator()<BFloat16>();
    case DType::kInt8: return f.template operator()<std::int8_t>();
    case DType::kInt16: return f.template operator()<std::int16_t>();
    case DType::kInt32: return f.template operator()<std::int32_t>();
    case DType::kInt64: return f.template operator()<std::int64_t>();
    case DType::kUint8: return f.template operator()<std::uint8_t>();
    case DType::kUint16: return f.template operator()<std::uint16_t>();
    case DType::kUint32: return f.template operator()<std::uint32_t>();
    case DType::kUint64: return f.template operator()<std::uint64_t>();
    default: throw_no_kernel(dtype, op);
  }
}

/// Like real_switch, with the complex dtypes.
template <class F>
void number_switch(DType dtype, std::string_view op, F&& f) {
  switch (base_dtype(dtype)) {
    case DType::kComplex64: return f.template operator()<std::complex<float>>();
    case DType::kComplex128: return f.template operator()<std::complex<double>>();
    default: return real_switch(dtype, op, f);
  }
}

template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

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
  if constexpr (is_small_float<T>) {
    return static_cast<float>(a) < static_cast<float>(b);
  } else {
    return a < b;
  }
}

}  // namespace tandem::cpu
