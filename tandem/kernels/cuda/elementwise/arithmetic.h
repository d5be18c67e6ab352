#pragma once

#include <cstdint>
#include <type_traits>

#include "tandem/kernels/cuda/support/number.h"

// Arithmetic of two elements, for elementwise kernels and for those that change elements in place.
// Sums and products of integers wrap around.

namespace tandem::cuda {

/// Integers are computed as unsigned ones, whose overflow is defined.
template <class T>
using Wrapping =
    std::conditional_t<!std::is_integral_v<T>, T,
                       std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>>;

#define TANDEM_WRAPPING(NAME, OPERATOR)                                    \
  struct NAME {                                                            \
    template <class T>                                                     \
    TANDEM_DEVICE static T apply(T a, T b) {                               \
      using W = Wrapping<T>;                                               \
      return static_cast<T>(static_cast<W>(a) OPERATOR static_cast<W>(b)); \
    }                                                                      \
  };
TANDEM_WRAPPING(Add, +)
TANDEM_WRAPPING(Sub, -)
TANDEM_WRAPPING(Mul, *)
#undef TANDEM_WRAPPING

/// A NaN of either side is the result.
struct Maximum {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    return a != a ? a : (b != b ? b : (a < b ? b : a));
  }
};
struct Minimum {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    return a != a ? a : (b != b ? b : (b < a ? b : a));
  }
};

/// Integers are rounded towards zero; by 0 they give -1 or, unsigned, the largest, as on
/// TensorFlow's GPUs.
struct Divide {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return static_cast<T>(~T(0));
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return Sub::apply(T(0), a);
      }
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};

}  // namespace tandem::cuda
