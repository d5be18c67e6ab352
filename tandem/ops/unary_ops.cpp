#include "tandem/ops/unary_ops.h"

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

constexpr OpTraits kElementwise{.elementwise = true, .may_reuse = 0b1};

#define TANDEM_GRADIENT(NAME, EXPRESSION)       \
  void NAME(GradientContext& g) {               \
    const Tensor &x = g.input(0), &y = g.output(); \
    static_cast<void>(x);                       \
    static_cast<void>(y);                       \
    g.set(0, g.grad() * (EXPRESSION));          \
  }
TANDEM_GRADIENT(neg_gradient, Tensor(-ones_like(x)))
TANDEM_GRADIENT(abs_gradient, sign(x))
TANDEM_GRADIENT(zero_gradient, zeros_like(x))
TANDEM_GRADIENT(square_gradient, x * 2.0)
TANDEM_GRADIENT(sqrt_gradient, realdiv(0.5, y))
TANDEM_GRADIENT(rsqrt_gradient, y * y * y * -0.5)
TANDEM_GRADIENT(reciprocal_gradient, -(y * y))
TANDEM_GRADIENT(exp_gradient, y)
TANDEM_GRADIENT(log_gradient, realdiv(1.0, x))
TANDEM_GRADIENT(log1p_gradient, realdiv(1.0, x + 1.0))
TANDEM_GRADIENT(sin_gradient, cos(x))
TANDEM_GRADIENT(cos_gradient, -sin(x))
TANDEM_GRADIENT(tanh_gradient, 1.0 - y * y)
TANDEM_GRADIENT(sigmoid_gradient, y * (1.0 - y))
TANDEM_GRADIENT(erf_gradient, exp(-(x * x)) * 1.1283791670955126)

#define TANDEM_UNARY_OP(NAME, TYPES, GRADIENT, DOC)                                                                \
  const OpRegistration k##NAME {                                                                                   \
    {                                                                                                              \
      .name = #NAME, .inputs = "x: T", .outputs = "y: T", .attrs = TYPES, .shape = shapes::unchanged,              \
      .gradient = GRADIENT, .traits = kElementwise, .doc = DOC,                                                    \
    }                                                                                                              \
  }
TANDEM_UNARY_OP(Neg, "T: numbers", neg_gradient, "-x.");
TANDEM_UNARY_OP(Abs, "T: reals", abs_gradient, "|x|.");
TANDEM_UNARY_OP(Sign, "T: numbers", zero_gradient, "The sign of x.");
TANDEM_UNARY_OP(Square, "T: numbers", square_gradient, "x².");
TANDEM_UNARY_OP(Sqrt, "T: {bfloat16, half, float, double, complex64, complex128}", sqrt_gradient, "The square root.");
TANDEM_UNARY_OP(Rsqrt, "T: {bfloat16, half, float, double, complex64, complex128}", rsqrt_gradient, "1 / sqrt(x).");
TANDEM_UNARY_OP(Reciprocal, "T: numbers", reciprocal_gradient, "1 / x.");
TANDEM_UNARY_OP(Exp, "T: {bfloat16, half, float, double, complex64, complex128}", exp_gradient, "e to the power of x.");
TANDEM_UNARY_OP(Log, "T: {bfloat16, half, float, double, complex64, complex128}", log_gradient, "The natural logarithm.");
TANDEM_UNARY_OP(Log1p, "T: {bfloat16, half, float, double, complex64, complex128}", log1p_gradient, "log(1 + x).");
TANDEM_UNARY_OP(Sin, "T: {bfloat16, half, float, double, complex64, complex128}", sin_gradient, "Sine.");
TANDEM_UNARY_OP(Cos, "T: {bfloat16, half, float, double, complex64, complex128}", cos_gradient, "Cosine.");
TANDEM_UNARY_OP(Tanh, "T: {bfloat16, half, float, double, complex64, complex128}", tanh_gradient, "Hyperbolic tangent.");
TANDEM_UNARY_OP(Sigmoid, "T: {bfloat16, half, float, double, complex64, complex128}", sigmoid_gradient, "1 / (1 + exp(-x)).");
TANDEM_UNARY_OP(Erf, "T: floats", erf_gradient, "The error function.");
TANDEM_UNARY_OP(Floor, "T: floats", zero_gradient, "The largest integer not above x.");

Tensor unary(const OpRegistration& op, Tensor x) { return call1(op, {std::move(x)}); }

}  // namespace

Tensor negative(Tensor x) { return unary(kNeg, std::move(x)); }
Tensor abs(Tensor x) { return unary(kAbs, std::move(x)); }
Tensor sign(Tensor x) { return unary(kSign, std::move(x)); }
Tensor square(Tensor x) { return unary(kSquare, std::move(x)); }
Tensor sqrt(Tensor x) { return unary(kSqrt, std::move(x)); }
Tensor exp(Tensor x) { return unary(kExp, std::move(x)); }
Tensor sin(Tensor x) { return unary(kSin, std::move(x)); }
Tensor cos(Tensor x) { return unary(kCos, std::move(x)); }
Tensor tanh(Tensor x) { return unary(kTanh, std::move(x)); }
Tensor sigmoid(Tensor x) { return unary(kSigmoid, std::move(x)); }
Tensor floor(Tensor x) { return unary(kFloor, std::move(x)); }
namespace math {
Tensor log(Tensor x) { return unary(kLog, std::move(x)); }
Tensor log1p(Tensor x) { return unary(kLog1p, std::move(x)); }
Tensor rsqrt(Tensor x) { return unary(kRsqrt, std::move(x)); }
Tensor reciprocal(Tensor x) { return unary(kReciprocal, std::move(x)); }
Tensor erf(Tensor x) { return unary(kErf, std::move(x)); }
}  // namespace math

}  // namespace tandem
