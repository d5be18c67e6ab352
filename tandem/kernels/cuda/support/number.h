#pragma once

#include <cstdint>
#include <type_traits>

#include "tandem/core/half.h"
#include "tandem/kernels/cuda/support/device_code.h"

#if defined(__CUDACC__) && !defined(__CUDACC_RTC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace tandem::cuda {

// Elements are stored as Half and BFloat16 and computed with as floats.

template <class T>
constexpr bool kIsFloat16 = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool kIsFloating = std::is_floating_point_v<T> || kIsFloat16<T>;

/// The type in which elements of T are computed.
template <class T>
using Compute = std::conditional_t<kIsFloat16<T>, float, T>;
/// The type in which many elements of T are summed up.
template <class T>
using Sum = std::conditional_t<
    kIsFloat16<T>, float,
    std::conditional_t<std::is_integral_v<T> && sizeof(T) < 8,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>, T>>;

template <class T>
TANDEM_HOST_DEVICE Compute<T> load(const T& value) {
  if constexpr (kIsFloat16<T>) {
#if defined(__CUDACC_RTC__)
    if constexpr (std::is_same_v<T, Half>) {
      float result;
      asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
      return result;
    } else {
      return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
    }
#elif defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, Half>) {
      return __half2float(__ushort_as_half(value.bits));
    } else {
      return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
    }
#else
    return static_cast<float>(value);
#endif
  } else {
    return value;
  }
}

/// `value` as an element of T. 16-bit floats are rounded to nearest even.
template <class T, class From>
TANDEM_HOST_DEVICE T store(From value) {
  if constexpr (kIsFloat16<T>) {
#if defined(__CUDACC_RTC__)
    T result;
    if constexpr (std::is_same_v<T, Half>) {
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(static_cast<float>(value)));
    } else {
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(static_cast<float>(value)));
    }
    return result;
#elif defined(__CUDA_ARCH__)
    T result;
    if constexpr (std::is_same_v<T, Half>) {
      result.bits = __half_as_ushort(__float2half_rn(static_cast<float>(value)));
    } else {
      result.bits = __bfloat16_as_ushort(__float2bfloat16_rn(static_cast<float>(value)));
    }
    return result;
#else
    return T(static_cast<float>(value));
#endif
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace tandem::cuda
