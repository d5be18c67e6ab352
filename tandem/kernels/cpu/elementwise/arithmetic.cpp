// AddV2, Sub, Mul, RealDiv and their like: one number for two, without error cases.

#include <cmath>
#include <complex>
#include <string>

#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

struct AddOf {
  template <class T>
  static T of(const T& x, const T& y) {
    if constexpr (std::is_same_v<T, std::string>) {
      return x + y;
    } else {
      return static_cast<T>(Wrapping<T>(x) + Wrapping<T>(y));
    }
  }
};
struct SubOf {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(Wrapping<T>(x) - Wrapping<T>(y));
  }
};
struct MulOf {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(Wrapping<T>(x) * Wrapping<T>(y));
  }
};
struct DivOf {
  template <class T>
  static T of(T x, T y) {
    return x / y;
  }
};
struct DivNoNanOf {
  template <class T>
  static T of(T x, T y) {
    return y == T(0) ? T(0) : x / y;
  }
};
struct MulNoNanOf {
  template <class T>
  static T of(T x, T y) {
    return y == T(0) ? T(0) : x * y;
  }
};
// NaN from either side; numbers otherwise.
struct MaximumOf {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
    }
    return x > y ? x : y;
  }
};
struct MinimumOf {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      if (x != x) return x;
    }
    return x < y ? x : y;
  }
};
struct SquaredDifferenceOf {
  template <class T>
  static T of(T x, T y) {
    const auto d = Wrapping<T>(x) - Wrapping<T>(y);
    return static_cast<T>(d * d);
  }
  template <class R>
  static std::complex<R> of(std::complex<R> x, std::complex<R> y) {
    return std::norm(x - y);
  }
};
struct XdivyOf {
  template <class T>
  static T of(T x, T y) {
    return x == T(0) ? T(0) : x / y;
  }
};
struct XlogyOf {
  template <class T>
  static T of(T x, T y) {
    return x == T(0) ? T(0) : x * std::log(y);
  }
};
struct Xlog1pyOf {
  template <class T>
  static T of(T x, T y) {
    if (x == T(0)) return T(0);
    if constexpr (std::is_floating_point_v<T>) {
      return x * std::log1p(y);
    } else {
      return x * std::log(T(1) + y);
    }
  }
};
struct Atan2Of {
  template <class T>
  static T of(T y, T x) {
    return std::atan2(y, x);
  }
};

constexpr auto kFields = Floats{} + Complexes{};

constexpr BinaryOp kAddV2 = binary_op<AddOf>(kNumbers);
constexpr BinaryOp kAdd = binary_op<AddOf>(kNumbers + Types<std::string>{});
constexpr BinaryOp kSub = binary_op<SubOf>(kNumbers);
constexpr BinaryOp kMul = binary_op<MulOf>(kNumbers);
constexpr BinaryOp kRealDiv = binary_op<DivOf>(kFields);
constexpr BinaryOp kDivNoNan = binary_op<DivNoNanOf>(kFields);
constexpr BinaryOp kMulNoNan = binary_op<MulNoNanOf>(kFields);
constexpr BinaryOp kMaximum = binary_op<MaximumOf>(kReals);
constexpr BinaryOp kMinimum = binary_op<MinimumOf>(kReals);
constexpr BinaryOp kSquaredDifference = binary_op<SquaredDifferenceOf>(kNumbers);
constexpr BinaryOp kXdivy = binary_op<XdivyOf>(kFields, 2);
constexpr BinaryOp kXlogy = binary_op<XlogyOf>(kFields, 5);
constexpr BinaryOp kXlog1py = binary_op<Xlog1pyOf>(kFields, 8);
constexpr BinaryOp kAtan2 = binary_op<Atan2Of>(Floats{}, 15);

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kAddV2>("AddV2")),
    KernelRegistration(kernel_of<kAdd>("Add")),
    KernelRegistration(kernel_of<kSub>("Sub")),
    KernelRegistration(kernel_of<kMul>("Mul")),
    KernelRegistration(kernel_of<kRealDiv>("RealDiv")),
    KernelRegistration(kernel_of<kDivNoNan>("DivNoNan")),
    KernelRegistration(kernel_of<kMulNoNan>("MulNoNan")),
    KernelRegistration(kernel_of<kMaximum>("Maximum")),
    KernelRegistration(kernel_of<kMinimum>("Minimum")),
    KernelRegistration(kernel_of<kSquaredDifference>("SquaredDifference")),
    KernelRegistration(kernel_of<kXdivy>("Xdivy")),
    KernelRegistration(kernel_of<kXlogy>("Xlogy")),
    KernelRegistration(kernel_of<kXlog1py>("Xlog1py")),
    KernelRegistration(kernel_of<kAtan2>("Atan2")),
};

}  // namespace
}  // namespace tandem::cpu
