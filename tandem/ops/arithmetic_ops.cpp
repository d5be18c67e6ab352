#include "tandem/ops/arithmetic_ops.h"

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void set(GradientContext& g, int i, Tensor gradient) { g.set(i, sum_to_shape_of(std::move(gradient), g.input(i))); }

void add_gradient(GradientContext& g) {
  if (g.needs(0)) set(g, 0, g.grad());
  if (g.needs(1)) set(g, 1, g.grad());
}
void sub_gradient(GradientContext& g) {
  if (g.needs(0)) set(g, 0, g.grad());
  if (g.needs(1)) set(g, 1, -g.grad());
}
void mul_gradient(GradientContext& g) {
  if (g.needs(0)) set(g, 0, g.grad() * g.input(1));
  if (g.needs(1)) set(g, 1, g.grad() * g.input(0));
}
void div_gradient(GradientContext& g) {
  if (g.needs(0)) set(g, 0, realdiv(g.grad(), g.input(1)));
  if (g.needs(1)) set(g, 1, g.grad() * realdiv(realdiv(-g.input(0), g.input(1)), g.input(1)));
}
void larger_gradient(GradientContext& g) {
  const Tensor first = greater_equal(g.input(0), g.input(1)), zero = zeros_like(g.grad());
  if (g.needs(0)) set(g, 0, where(first, g.grad(), zero));
  if (g.needs(1)) set(g, 1, where(first, zero, g.grad()));
}
void smaller_gradient(GradientContext& g) {
  const Tensor first = less_equal(g.input(0), g.input(1)), zero = zeros_like(g.grad());
  if (g.needs(0)) set(g, 0, where(first, g.grad(), zero));
  if (g.needs(1)) set(g, 1, where(first, zero, g.grad()));
}
void squared_difference_gradient(GradientContext& g) {
  const Tensor d = g.grad() * 2.0 * (g.input(0) - g.input(1));
  if (g.needs(0)) set(g, 0, d);
  if (g.needs(1)) set(g, 1, -d);
}
// 0 ^ y has no derivative with respect to y; TensorFlow takes the logarithm of 1 there.
void pow_gradient(GradientContext& g) {
  const Tensor &x = g.input(0), &y = g.input(1);
  if (g.needs(0)) set(g, 0, g.grad() * y * pow(x, y - 1.0));
  if (g.needs(1)) {
    const Tensor positive = greater(x, 0.0);
    const Tensor logarithm = where(positive, math::log(where(positive, x, ones_like(x))), zeros_like(x));
    set(g, 1, g.grad() * g.output() * logarithm);
  }
}

constexpr OpTraits kElementwise{.elementwise = true, .may_reuse = 0b11};
constexpr OpTraits kCommutative{.elementwise = true, .commutative = true, .may_reuse = 0b11};

#define TANDEM_BINARY_OP(NAME, TYPES, GRADIENT, TRAITS, DOC)                                                        \
  const OpRegistration k##NAME {                                                                                    \
    {                                                                                                               \
      .name = #NAME, .inputs = "x: T, y: T", .outputs = "z: T", .attrs = TYPES, .shape = shapes::broadcast_binary,  \
      .gradient = GRADIENT, .traits = TRAITS, .doc = DOC,                                                           \
    }                                                                                                               \
  }
TANDEM_BINARY_OP(AddV2, "T: numbers", add_gradient, kCommutative, "x + y.");
TANDEM_BINARY_OP(Sub, "T: numbers", sub_gradient, kElementwise, "x - y.");
TANDEM_BINARY_OP(Mul, "T: numbers", mul_gradient, kCommutative, "x * y.");
TANDEM_BINARY_OP(RealDiv, "T: numbers", div_gradient, kElementwise, "x / y.");
TANDEM_BINARY_OP(Maximum, "T: reals", larger_gradient, kCommutative, "The larger of x and y.");
TANDEM_BINARY_OP(Minimum, "T: reals", smaller_gradient, kCommutative, "The smaller of x and y.");
TANDEM_BINARY_OP(SquaredDifference, "T: numbers", squared_difference_gradient, kCommutative, "(x - y)².");
TANDEM_BINARY_OP(Pow, "T: numbers", pow_gradient, kElementwise, "x to the power of y.");
TANDEM_BINARY_OP(DivNoNan, "T: numbers", nullptr, kElementwise, "x / y, 0 where y is 0.");
TANDEM_BINARY_OP(MulNoNan, "T: numbers", nullptr, kElementwise, "x * y, 0 where y is 0.");

Tensor binary(const OpRegistration& op, Operand x, Operand y) {
  OperandPair p = take_both(std::move(x), std::move(y));
  return call1(op, {std::move(p.x), std::move(p.y)});
}

}  // namespace

Tensor add(Operand x, Operand y) { return binary(kAddV2, std::move(x), std::move(y)); }
Tensor subtract(Operand x, Operand y) { return binary(kSub, std::move(x), std::move(y)); }
Tensor multiply(Operand x, Operand y) { return binary(kMul, std::move(x), std::move(y)); }
Tensor realdiv(Operand x, Operand y) { return binary(kRealDiv, std::move(x), std::move(y)); }
Tensor divide(Operand x, Operand y) { return truediv(std::move(x), std::move(y)); }
Tensor truediv(Operand x, Operand y) {
  OperandPair p = take_both(std::move(x), std::move(y));
  const DType t = p.x.dtype();
  if (is_integer(t)) {
    const DType wide = dtype_size(t) <= 2 ? DType::kFloat : DType::kDouble;
    p = {cast(std::move(p.x), wide), cast(std::move(p.y), wide)};
  }
  return call1(kRealDiv, {std::move(p.x), std::move(p.y)});
}
Tensor pow(Operand x, Operand y) { return binary(kPow, std::move(x), std::move(y)); }
Tensor maximum(Operand x, Operand y) { return binary(kMaximum, std::move(x), std::move(y)); }
Tensor minimum(Operand x, Operand y) { return binary(kMinimum, std::move(x), std::move(y)); }

namespace math {
Tensor squared_difference(Operand x, Operand y) { return binary(kSquaredDifference, std::move(x), std::move(y)); }
Tensor divide_no_nan(Operand x, Operand y) { return binary(kDivNoNan, std::move(x), std::move(y)); }
Tensor multiply_no_nan(Operand x, Operand y) { return binary(kMulNoNan, std::move(x), std::move(y)); }
}  // namespace math

}  // namespace tandem
