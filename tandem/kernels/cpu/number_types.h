#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"

// Kernels that calculate: which C++ type an element has, and in which type to calculate with it.

namespace tandem::cpu {

/// The type in which values of type T are added up and multiplied: float for half and bfloat16.
template <class T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<Half> {
  using type = float;
};
template <>
struct WideOf<BFloat16> {
  using type = float;
};
template <class T>
using Wide = typename WideOf<T>::type;

template <class T>
inline Wide<T> widen(T value) {
  return static_cast<Wide<T>>(value);
}

/// Calls `f.template operator()<T>()` with the element type of `dtype`, which must be one of Ts.
template <class... Ts, class F>
void with_type(DType dtype, F&& f) {
  const bool found = ((dtype == dtype_of<Ts> && (f.template operator()<Ts>(), true)) || ...);
  if (!found) throw InternalError(cat("a kernel was called with elements of ", dtype));
}

/// half, bfloat16, float, double.
template <class F>
void with_floating(DType dtype, F&& f) {
  with_type<Half, BFloat16, float, double>(dtype, f);
}

/// The real numbers: floating and integer types.
template <class F>
void with_real(DType dtype, F&& f) {
  with_type<Half, BFloat16, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
            std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(dtype, f);
}

/// All numbers, for sums: signed integers come as unsigned ones, whose overflow is defined and has
/// the same bits.
template <class F>
void with_addable(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt8: return f.template operator()<std::uint8_t>();
    case DType::kInt16: return f.template operator()<std::uint16_t>();
    case DType::kInt32: return f.template operator()<std::uint32_t>();
    case DType::kInt64: return f.template operator()<std::uint64_t>();
    default: break;
  }
  with_type<Half, BFloat16, float, double, std::uint8_t, std::uint16_t, std::uint32_t,
            std::uint64_t, std::complex<float>, std::complex<double>>(dtype, f);
}

}  // namespace tandem::cpu
