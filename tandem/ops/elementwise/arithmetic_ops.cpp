#include "tandem/ops/arithmetic_ops.h"

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/internal/call_binary.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::call_binary;

void set_x(GradientContext& g, Tensor gradient) {
  g.set(0, sum_to_shape_of(std::move(gradient), g.input(0), g.input(1)));
}
void set_y(GradientContext& g, Tensor gradient) {
  g.set(1, sum_to_shape_of(std::move(gradient), g.input(1), g.input(0)));
}

void add_grad(GradientContext& g) {
  if (g.needs(0)) set_x(g, g.grad());
  if (g.needs(1)) set_y(g, g.grad());
}

void sub_grad(GradientContext& g) {
  if (g.needs(0)) set_x(g, g.grad());
  if (g.needs(1)) set_y(g, -g.grad());
}

void mul_grad(GradientContext& g) {
  if (g.needs(0)) set_x(g, g.grad() * math::conj(g.input(1)));
  if (g.needs(1)) set_y(g, math::conj(g.input(0)) * g.grad());
}

// d(x / y) = dx / y - x / y / y dy, for the divisions that are exact.
using Division = Tensor (*)(Operand, Operand);
template <Division divide>
void quotient_grad(GradientContext& g) {
  const Tensor y = math::conj(g.input(1));
  if (g.needs(0)) set_x(g, divide(g.grad(), y));
  if (g.needs(1)) set_y(g, g.grad() * divide(divide(-math::conj(g.input(0)), y), y));
}

void mul_no_nan_grad(GradientContext& g) {
  if (g.needs(0)) set_x(g, math::multiply_no_nan(g.grad(), g.input(1)));
  if (g.needs(1)) set_y(g, math::multiply_no_nan(g.input(0), g.grad()));
}

// x - floor(x / y) y, where the floor counts as constant.
void floor_mod_grad(GradientContext& g) {
  if (g.needs(0)) set_x(g, g.grad());
  if (g.needs(1)) set_y(g, g.grad() * -floordiv(g.input(0), g.input(1)));
}

// 0 to the power of y, and powers of negative numbers, have no derivative with respect to y: it
// counts as 0.
void pow_grad(GradientContext& g) {
  const Tensor x = math::conj(g.input(0)), y = math::conj(g.input(1));
  if (g.needs(0)) set_x(g, g.grad() * (y * pow(x, y - 1)));
  if (g.needs(1)) {
    const Tensor usable = is_complex(x.dtype()) ? not_equal(x, 0) : greater(x, 0);
    const Tensor logarithm = where(usable, math::log(where(usable, x, 1)), 0);
    set_y(g, g.grad() * math::conj(g.output()) * logarithm);
  }
}

template <Tensor (*chooses_x)(Operand, Operand)>
void choice_grad(GradientContext& g) {
  const Tensor chosen = chooses_x(g.input(0), g.input(1));
  if (g.needs(0)) set_x(g, where(chosen, g.grad(), 0));
  if (g.needs(1)) set_y(g, where(chosen, 0, g.grad()));
}

void squared_difference_grad(GradientContext& g) {
  const Tensor gradient = (g.grad() * 2) * (g.input(0) - g.input(1));
  if (g.needs(0)) set_x(g, gradient);
  if (g.needs(1)) set_y(g, -gradient);
}

// 1 where x is not 0: there the functions below are plain products.
Tensor nonzero(const Tensor& x) { return cast(not_equal(x, 0), x.dtype()); }

void xdivy_grad(GradientContext& g) {
  const Tensor &x = g.input(0), &y = g.input(1);
  if (g.needs(0)) set_x(g, g.grad() * math::xdivy(nonzero(x), y));
  if (g.needs(1)) set_y(g, g.grad() * math::xdivy(-x, square(y)));
}

void xlogy_grad(GradientContext& g) {
  const Tensor &x = g.input(0), &y = g.input(1);
  if (g.needs(0)) set_x(g, g.grad() * math::xlogy(nonzero(x), y));
  if (g.needs(1)) set_y(g, g.grad() * math::xdivy(x, y));
}

void xlog1py_grad(GradientContext& g) {
  const Tensor &x = g.input(0), &y = g.input(1);
  if (g.needs(0)) set_x(g, g.grad() * math::xlog1py(nonzero(x), y));
  if (g.needs(1)) set_y(g, g.grad() * math::xdivy(x, y + 1));
}

void atan2_grad(GradientContext& g) {
  const Tensor &y = g.input(0), &x = g.input(1);
  const Tensor scaled = g.grad() / (square(x) + square(y));
  if (g.needs(0)) set_x(g, x * scaled);
  if (g.needs(1)) set_y(g, -y * scaled);
}

// x * 1 and 1 * x are x.
bool drop_factor_one(RewriteContext& r) {
  for (int i = 0; i < 2; ++i) {
    if (r.is_constant(i, 1) && r.may_drop(i) &&
        r.replace_with(r.node().inputs()[static_cast<std::size_t>(1 - i)]))
      return true;
  }
  return false;
}

// x / 1 is x.
bool drop_divisor_one(RewriteContext& r) {
  return r.is_constant(1, 1) && r.may_drop(1) && r.replace_with(r.node().inputs()[0]);
}

constexpr OpTraits kElementwise{.elementwise = true, .may_reuse = 0b11};
constexpr OpTraits kCommutative{.elementwise = true, .commutative = true, .may_reuse = 0b11};
// Rounded once.
constexpr OpTraits kExact{.elementwise = true, .exact = Exactness::kAlways, .may_reuse = 0b11};
constexpr OpTraits kExactCommutative{
    .elementwise = true, .exact = Exactness::kAlways, .commutative = true, .may_reuse = 0b11};
constexpr OpTraits kExactQuotient{
    .elementwise = true, .exact = Exactness::kFloating, .may_reuse = 0b11};

constexpr OpDecl binary(const char* name, const char* attrs, GradientFn gradient, OpTraits traits,
                        const char* doc, RewriteFn fuse = nullptr, RewriteFn rewrite = nullptr) {
  return {.name = name,
          .inputs = "x: T, y: T",
          .outputs = "z: T",
          .attrs = attrs,
          .shape = shapes::broadcast_binary,
          .gradient = gradient,
          .traits = traits,
          .rewrite = rewrite,
          .fuse = fuse,
          .doc = doc};
}

constexpr const char* kFloatsAndComplexes =
    "T: {bfloat16, half, float, double, complex64, complex128}";
constexpr const char* kReal =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

const OpRegistration kAddV2(binary("AddV2", "T: numbers", add_grad, kExactCommutative,
                                   "x + y, broadcast.", internal::fuse_add));
const OpRegistration kAdd(
    binary("Add",
           "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
           "complex128, string}",
           add_grad, {.elementwise = true, .may_reuse = 0b11},
           "x + y, broadcast; strings are joined.", internal::fuse_add));
const OpRegistration kSub(binary("Sub", "T: numbers", sub_grad, kExact, "x - y, broadcast."));
const OpRegistration kMul(binary("Mul", "T: numbers", mul_grad, kExactCommutative,
                                 "x * y, broadcast.", internal::fuse_mul, drop_factor_one));
const OpRegistration kDiv(
    binary("Div", "T: numbers", quotient_grad<realdiv>, kExactQuotient,
           "x / y, broadcast; of integers cut off towards zero, and no division by zero.", nullptr,
           drop_divisor_one));
const OpRegistration kRealDiv(binary("RealDiv", "T: numbers", quotient_grad<realdiv>,
                                     kExactQuotient,
                                     "x / y, broadcast, of floating and complex numbers.", nullptr,
                                     drop_divisor_one));
const OpRegistration kFloorDiv(
    binary("FloorDiv", "T: numbers", not_differentiable, kElementwise,
           "x / y, broadcast, rounded towards minus infinity; no integer division by zero."));
const OpRegistration kTruncateDiv(
    binary("TruncateDiv", "T: numbers", not_differentiable, kElementwise,
           "x / y, broadcast, cut off towards zero; no integer division by zero."));
const OpRegistration kDivNoNan(binary("DivNoNan", kFloatsAndComplexes,
                                      quotient_grad<math::divide_no_nan>, kElementwise,
                                      "x / y, broadcast; 0 where y is 0."));
const OpRegistration kMulNoNan(binary("MulNoNan", kFloatsAndComplexes, mul_no_nan_grad,
                                      kElementwise,
                                      "x * y, broadcast; 0 where y is 0, whatever x is."));
const OpRegistration kFloorMod(
    binary("FloorMod", kReal, floor_mod_grad, kElementwise,
           "x - floor(x / y) y, broadcast: the remainder with the sign of y."));
const OpRegistration kMod(
    binary("Mod", "T: {int32, int64, half, bfloat16, float, double}", nullptr, kElementwise,
           "The remainder of x / y with the sign of x, broadcast; of floating values C's fmod."));
const OpRegistration kTruncateMod(binary("TruncateMod",
                                         "T: {int32, int64, bfloat16, half, float, double}",
                                         nullptr, kElementwise,
                                         "The remainder of x / y with the sign of x, broadcast."));
const OpRegistration kPow(binary(
    "Pow", "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    pow_grad, kElementwise, "x to the power of y, broadcast; integer exponents from 0 on."));
const OpRegistration kMaximum(binary("Maximum", kReal, choice_grad<greater_equal>, kExact,
                                     "The larger of x and y, broadcast; NaN if either is."));
const OpRegistration kMinimum(binary("Minimum", kReal, choice_grad<less_equal>, kExact,
                                     "The smaller of x and y, broadcast; NaN if either is."));
const OpRegistration kSquaredDifference(binary(
    "SquaredDifference", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    squared_difference_grad, kCommutative, "conj(x - y) (x - y), broadcast."));
const OpRegistration kXdivy(binary("Xdivy", kFloatsAndComplexes, xdivy_grad, kElementwise,
                                   "x / y, broadcast; 0 where x is 0."));
const OpRegistration kXlogy(binary("Xlogy", kFloatsAndComplexes, xlogy_grad, kElementwise,
                                   "x log(y), broadcast; 0 where x is 0."));
const OpRegistration kXlog1py(binary("Xlog1py", kFloatsAndComplexes, xlog1py_grad, kElementwise,
                                     "x log(1 + y), broadcast; 0 where x is 0."));
const OpRegistration kAtan2{{.name = "Atan2",
                             .inputs = "y: T, x: T",
                             .outputs = "z: T",
                             .attrs = "T: {bfloat16, half, float, double}",
                             .shape = shapes::broadcast_binary,
                             .gradient = atan2_grad,
                             .traits = kElementwise,
                             .doc = "The angle of the point (x, y) in (-pi, pi], broadcast."}};

// What integers become before a true division, as TensorFlow has it.
DType quotient_type(DType t) {
  if (!is_integer(t)) return t;
  return dtype_size(t) <= 2 ? DType::kFloat : DType::kDouble;
}

}  // namespace

Tensor add(Operand x, Operand y) { return call_binary(kAddV2, std::move(x), std::move(y)); }
Tensor subtract(Operand x, Operand y) { return call_binary(kSub, std::move(x), std::move(y)); }
Tensor multiply(Operand x, Operand y) { return call_binary(kMul, std::move(x), std::move(y)); }

Tensor truediv(Operand x, Operand y) {
  OperandPair both = take_both(std::move(x), std::move(y));
  const DType tx = both.x.dtype(), ty = both.y.dtype();
  if (tx == ty && is_integer(tx)) {
    both.x = cast(std::move(both.x), quotient_type(tx));
    both.y = cast(std::move(both.y), quotient_type(tx));
  }
  return call1(kRealDiv, {std::move(both.x), std::move(both.y)});
}
Tensor divide(Operand x, Operand y) { return truediv(std::move(x), std::move(y)); }
Tensor realdiv(Operand x, Operand y) { return call_binary(kRealDiv, std::move(x), std::move(y)); }
Tensor floordiv(Operand x, Operand y) { return call_binary(kFloorDiv, std::move(x), std::move(y)); }
Tensor truncatediv(Operand x, Operand y) {
  return call_binary(kTruncateDiv, std::move(x), std::move(y));
}
Tensor floormod(Operand x, Operand y) { return call_binary(kFloorMod, std::move(x), std::move(y)); }
Tensor mod(Operand x, Operand y) { return call_binary(kFloorMod, std::move(x), std::move(y)); }
Tensor truncatemod(Operand x, Operand y) {
  return call_binary(kTruncateMod, std::move(x), std::move(y));
}
Tensor pow(Operand x, Operand y) { return call_binary(kPow, std::move(x), std::move(y)); }
Tensor maximum(Operand x, Operand y) { return call_binary(kMaximum, std::move(x), std::move(y)); }
Tensor minimum(Operand x, Operand y) { return call_binary(kMinimum, std::move(x), std::move(y)); }
Tensor atan2(Operand y, Operand x) { return call_binary(kAtan2, std::move(y), std::move(x)); }

namespace math {
Tensor squared_difference(Operand x, Operand y) {
  return call_binary(kSquaredDifference, std::move(x), std::move(y));
}
Tensor divide_no_nan(Operand x, Operand y) {
  return call_binary(kDivNoNan, std::move(x), std::move(y));
}
Tensor multiply_no_nan(Operand x, Operand y) {
  return call_binary(kMulNoNan, std::move(x), std::move(y));
}
Tensor xdivy(Operand x, Operand y) { return call_binary(kXdivy, std::move(x), std::move(y)); }
Tensor xlogy(Operand x, Operand y) { return call_binary(kXlogy, std::move(x), std::move(y)); }
Tensor xlog1py(Operand x, Operand y) { return call_binary(kXlog1py, std::move(x), std::move(y)); }
}  // namespace math

}  // namespace tandem
