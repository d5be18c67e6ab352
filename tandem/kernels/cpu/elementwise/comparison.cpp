// Equal, Less and their like, ApproximateEqual, and the logic of bools.

#include <cmath>
#include <complex>
#include <string>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

struct EqualOf {
  template <class T>
  static bool of(const T& x, const T& y) {
    return x == y;
  }
};
struct NotEqualOf {
  template <class T>
  static bool of(const T& x, const T& y) {
    return x != y;
  }
};
struct LessOf {
  template <class T>
  static bool of(T x, T y) {
    return x < y;
  }
};
struct LessEqualOf {
  template <class T>
  static bool of(T x, T y) {
    return x <= y;
  }
};
struct GreaterOf {
  template <class T>
  static bool of(T x, T y) {
    return x > y;
  }
};
struct GreaterEqualOf {
  template <class T>
  static bool of(T x, T y) {
    return x >= y;
  }
};
struct ApproximateEqualOf {
  template <class T>
  static bool of(T x, T y, float tolerance) {
    if constexpr (std::is_integral_v<T>) {
      const auto distance =
          x < y ? Wrapping<T>(y) - Wrapping<T>(x) : Wrapping<T>(x) - Wrapping<T>(y);
      return static_cast<double>(distance) < static_cast<double>(tolerance);
    } else {
      return std::abs(x - y) < static_cast<decltype(std::abs(x))>(tolerance);
    }
  }
};

// Bools that come from outside may hold any byte: all but 0 are true.
template <class F>
constexpr BinaryOp bools() {
  BinaryOp op;
  op.set(DType::kBool, binary_loop<F, std::uint8_t>);
  return op;
}
template <class F>
constexpr BinaryOp equality() {
  BinaryOp op = binary_op<F>(kNumbers + Types<std::string>{});
  struct OfBools {
    static bool of(std::uint8_t x, std::uint8_t y) { return F::of(x != 0, y != 0); }
  };
  op.set(DType::kBool, binary_loop<OfBools, std::uint8_t>);
  return op;
}

struct AndOf {
  static bool of(std::uint8_t x, std::uint8_t y) { return x != 0 && y != 0; }
};
struct OrOf {
  static bool of(std::uint8_t x, std::uint8_t y) { return x != 0 || y != 0; }
};
struct NotOf {
  static bool of(std::uint8_t x) { return x == 0; }
};
constexpr UnaryOp of_bool() {
  UnaryOp op;
  op.set(DType::kBool, unary_loop<NotOf, std::uint8_t>);
  return op;
}

constexpr BinaryOp kEqual = equality<EqualOf>();
constexpr BinaryOp kNotEqual = equality<NotEqualOf>();
constexpr BinaryOp kLess = binary_op<LessOf>(kReals);
constexpr BinaryOp kLessEqual = binary_op<LessEqualOf>(kReals);
constexpr BinaryOp kGreater = binary_op<GreaterOf>(kReals);
constexpr BinaryOp kGreaterEqual = binary_op<GreaterEqualOf>(kReals);
constexpr BinaryOp kApproximateEqual = binary_op<ApproximateEqualOf>(kNumbers);
constexpr BinaryOp kLogicalAnd = bools<AndOf>();
constexpr BinaryOp kLogicalOr = bools<OrOf>();
constexpr UnaryOp kLogicalNot = of_bool();

// Values of shapes that do not broadcast differ as a whole, if the caller wants that rather than an
// error.
bool answered_by_shapes(KernelContext& c, bool answer) {
  const Shape &x = c.input(0).shape(), &y = c.input(1).shape();
  if (x == y || c.attr<bool>("incompatible_shape_error")) return false;
  for (int i = 1; i <= x.rank() && i <= y.rank(); ++i) {
    const std::int64_t a = x[x.rank() - i], b = y[y.rank() - i];
    if (a == b || a == 1 || b == 1) continue;
    c.allocate_output(0, Shape{}).data<bool>()[0] = answer;
    return true;
  }
  return false;
}
void equal(KernelContext& c) {
  if (!answered_by_shapes(c, false)) run_binary(c, kEqual);
}
void not_equal(KernelContext& c) {
  if (!answered_by_shapes(c, true)) run_binary(c, kNotEqual);
}
void approximate_equal(KernelContext& c) {
  run_binary_same_shape(c, kApproximateEqual, c.attr<float>("tolerance"));
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "Equal", .types = {{"T", kEqual.types()}}, .run = equal}),
    KernelRegistration({.op = "NotEqual", .types = {{"T", kNotEqual.types()}}, .run = not_equal}),
    KernelRegistration({.op = "ApproximateEqual",
                        .types = {{"T", kApproximateEqual.types()}},
                        .run = approximate_equal}),
    KernelRegistration(kernel_of<kLess>("Less")),
    KernelRegistration(kernel_of<kLessEqual>("LessEqual")),
    KernelRegistration(kernel_of<kGreater>("Greater")),
    KernelRegistration(kernel_of<kGreaterEqual>("GreaterEqual")),
    KernelRegistration(kernel_of<kLogicalAnd>("LogicalAnd", nullptr)),
    KernelRegistration(kernel_of<kLogicalOr>("LogicalOr", nullptr)),
    KernelRegistration(kernel_of<kLogicalNot>("LogicalNot", nullptr)),
};

}  // namespace
}  // namespace tandem::cpu
