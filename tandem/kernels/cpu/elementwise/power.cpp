// Pow.

#include <cmath>
#include <complex>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

[[noreturn]] [[gnu::cold]] [[gnu::noinline]] void negative_exponent() {
  throw InvalidArgumentError(
      "Integers to negative integer powers are not allowed. Cast to a floating dtype with td::cast "
      "first.");
}

struct PowOf {
  template <class T>
  static T of(T x, T y) {
    if constexpr (!std::is_integral_v<T>) {
      return std::pow(x, y);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (y < 0) negative_exponent();
      }
      Wrapping<T> base = static_cast<Wrapping<T>>(x), power = 1;
      for (auto exponent = static_cast<Wrapping<T>>(y); exponent != 0; exponent >>= 1) {
        if (exponent & 1) power *= base;
        base *= base;
      }
      return static_cast<T>(power);
    }
  }
};

constexpr BinaryOp kPow = binary_op<PowOf>(Floats{} + SignedInts{} + Complexes{}, 15);
const KernelRegistration kPowKernel(kernel_of<kPow>("Pow"));

}  // namespace
}  // namespace tandem::cpu
