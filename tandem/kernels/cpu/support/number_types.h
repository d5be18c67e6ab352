#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"

// Kernels that calculate: from a DType to a C++ type, one instantiation for each type that needs
// one, and in which type to calculate with it.

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
using Compute = Wide<T>;

template <class T>
inline Wide<T> widen(T value) {
  return static_cast<Wide<T>>(value);
}

template <class T>
inline constexpr bool is_float16 = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_complex_type = false;
template <class R>
inline constexpr bool is_complex_type<std::complex<R>> = true;

// ---- From a dtype to a type: each calls `f.template operator()<T>()` with the element type. A
// reference's is that of what it refers to; UnimplementedError if the dtype is none of those named.

[[noreturn]] inline void throw_no_kernel(DType dtype) {
  throw UnimplementedError(
      cat("There is no CPU kernel for elements of ", dtype, ". Use td::cast."));
}

/// One of Ts.
template <class... Ts, class F>
void with_type(DType dtype, F&& f) {
  const DType base = base_dtype(dtype);
  const bool found = ((base == dtype_of<Ts> && (f.template operator()<Ts>(), true)) || ...);
  if (!found) throw_no_kernel(dtype);
}

/// half, bfloat16, float, double.
template <class F>
void with_floating(DType dtype, F&& f) {
  with_type<Half, BFloat16, float, double>(dtype, f);
}

template <class F>
decltype(auto) with_integer(DType dtype, F&& f) {
  switch (base_dtype(dtype)) {
    case DType::kInt8: return f.template operator()<std::int8_t>();
    case DType::kInt16: return f.template operator()<std::int16_t>();
    case DType::kInt32: return f.template operator()<std::int32_t>();
    case DType::kInt64: return f.template operator()<std::int64_t>();
    case DType::kUint8: return f.template operator()<std::uint8_t>();
    case DType::kUint16: return f.template operator()<std::uint16_t>();
    case DType::kUint32: return f.template operator()<std::uint32_t>();
    case DType::kUint64: return f.template operator()<std::uint64_t>();
    default: throw_no_kernel(dtype);
  }
}

/// The real numbers: integers and floating dtypes.
template <class F>
decltype(auto) with_real(DType dtype, F&& f) {
  switch (base_dtype(dtype)) {
    case DType::kFloat: return f.template operator()<float>();
    case DType::kDouble: return f.template operator()<double>();
    case DType::kHalf: return f.template operator()<Half>();
    case DType::kBFloat16: return f.template operator()<BFloat16>();
    default: return with_integer(dtype, f);
  }
}

/// All numbers.
template <class F>
decltype(auto) with_number(DType dtype, F&& f) {
  switch (base_dtype(dtype)) {
    case DType::kComplex64: return f.template operator()<std::complex<float>>();
    case DType::kComplex128: return f.template operator()<std::complex<double>>();
    default: return with_real(dtype, f);
  }
}

/// All numbers, for sums: signed integers come as unsigned ones, whose overflow is defined and has
/// the same bits.
template <class F>
decltype(auto) with_addable(DType dtype, F&& f) {
  switch (base_dtype(dtype)) {
    case DType::kInt8: return f.template operator()<std::uint8_t>();
    case DType::kInt16: return f.template operator()<std::uint16_t>();
    case DType::kInt32: return f.template operator()<std::uint32_t>();
    case DType::kInt64: return f.template operator()<std::uint64_t>();
    default: return with_number(dtype, f);
  }
}

}  // namespace tandem::cpu
