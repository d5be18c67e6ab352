// Quotients and remainders that are rounded, and those of integers: division by zero is an error
// there, and the least integer divided by -1 wraps around to itself instead of trapping.

#include <cmath>
#include <complex>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

[[noreturn]] [[gnu::cold]] [[gnu::noinline]] void division_by_zero() {
  throw InvalidArgumentError(
      "Integer division by zero. Divide floating values, or replace the zeros with td::where "
      "first.");
}

template <class T>
bool is_minus_one(T y) {
  return std::is_signed_v<T> && y == static_cast<T>(-1);
}

struct TruncateDivOf {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::trunc(x / y);
    } else {
      if (y == 0) division_by_zero();
      return is_minus_one(y) ? static_cast<T>(Wrapping<T>(0) - Wrapping<T>(x))
                             : static_cast<T>(x / y);
    }
  }
};

// The quotient of floating values.
struct DivOf {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_integral_v<T>) {
      return TruncateDivOf::of(x, y);
    } else {
      return x / y;
    }
  }
};

struct TruncateModOf {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(x, y);
    } else {
      if (y == 0) division_by_zero();
      return is_minus_one(y) ? T(0) : static_cast<T>(x % y);
    }
  }
};

struct FloorDivOf {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::floor(x / y);
    } else {
      const T quotient = TruncateDivOf::of(x, y);
      const bool below = TruncateModOf::of(x, y) != 0 && (x < 0) != (y < 0);
      return below ? static_cast<T>(quotient - 1) : quotient;
    }
  }
};

struct FloorModOf {
  template <class T>
  static T of(T x, T y) {
    const T rest = TruncateModOf::of(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
  }
};

// For 16-bit floats, whose quotient is rounded to 16 bits before it is rounded to an integer.
template <class Of>
struct RoundedTwice {
  template <class T>
  static T of(T x, T y) {
    const T quotient(static_cast<float>(x) / static_cast<float>(y));
    return T(Of::of(static_cast<float>(quotient), 1.0f));
  }
};

template <class Of>
constexpr BinaryOp rounded_quotient(double cost) {
  BinaryOp op = binary_op<Of>(kReals, cost);
  op.set(DType::kHalf, binary_loop<RoundedTwice<Of>, Half>);
  op.set(DType::kBFloat16, binary_loop<RoundedTwice<Of>, BFloat16>);
  return op;
}

constexpr BinaryOp kDiv = binary_op<DivOf>(kNumbers, 2);
constexpr BinaryOp kTruncateDiv = rounded_quotient<TruncateDivOf>(2);
constexpr BinaryOp kFloorDiv = rounded_quotient<FloorDivOf>(3);
constexpr BinaryOp kTruncateMod = binary_op<TruncateModOf>(kReals, 8);
constexpr BinaryOp kFloorMod = binary_op<FloorModOf>(kReals, 8);

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kDiv>("Div")),
    KernelRegistration(kernel_of<kTruncateDiv>("TruncateDiv")),
    KernelRegistration(kernel_of<kFloorDiv>("FloorDiv")),
    KernelRegistration(kernel_of<kFloorMod>("FloorMod")),
    KernelRegistration(kernel_of<kTruncateMod>("TruncateMod")),
    KernelRegistration(kernel_of<kTruncateMod>("Mod")),
};

}  // namespace
}  // namespace tandem::cpu
