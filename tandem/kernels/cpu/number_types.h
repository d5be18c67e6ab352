#pragma once

#include <complex>
#include <cstdint>

#include "tandem/core/dtype.h"
#include "tandem/core/error.h"

// From a DType to a C++ type: one instantiation of a kernel for each type that needs one.

namespace tandem::cpu {

/// Calls `f.template operator()<T>()` with T the element type of an integer dtype.
template <class F>
decltype(auto) with_integer(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kInt8: return f.template operator()<std::int8_t>();
    case DType::kInt16: return f.template operator()<std::int16_t>();
    case DType::kInt32: return f.template operator()<std::int32_t>();
    case DType::kInt64: return f.template operator()<std::int64_t>();
    case DType::kUint8: return f.template operator()<std::uint8_t>();
    case DType::kUint16: return f.template operator()<std::uint16_t>();
    case DType::kUint32: return f.template operator()<std::uint32_t>();
    case DType::kUint64: return f.template operator()<std::uint64_t>();
    default: throw UnimplementedError(cat("there is no kernel for ", dtype));
  }
}

/// Integers and floating dtypes; half and bfloat16 are Half and BFloat16.
template <class F>
decltype(auto) with_real(DType dtype, F&& f) {
  switch (dtype) {
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
  switch (dtype) {
    case DType::kComplex64: return f.template operator()<std::complex<float>>();
    case DType::kComplex128: return f.template operator()<std::complex<double>>();
    default: return with_real(dtype, f);
  }
}

/// What a kernel computes values of T in.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <class T>
using Compute = typename ComputeType<T>::type;

template <class T>
inline constexpr bool is_float16 = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_complex_type = false;
template <class R>
inline constexpr bool is_complex_type<std::complex<R>> = true;

}  // namespace tandem::cpu
