#include "tandem/ops/unary_ops.h"

#include <numbers>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/activation_ops.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/special_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

Tensor sqrt_gradient(Tensor y, Tensor dy);
Tensor rsqrt_gradient(Tensor y, Tensor dy);
Tensor reciprocal_gradient(Tensor y, Tensor dy);
Tensor tanh_gradient(Tensor y, Tensor dy);
Tensor sigmoid_gradient(Tensor y, Tensor dy);

// Gradients multiply by the conjugate of the derivative; conj of a real tensor is the tensor
// itself.
Tensor x_of(GradientContext& g) { return math::conj(g.input(0)); }
Tensor y_of(GradientContext& g) { return math::conj(g.output()); }

void abs_grad(GradientContext& g) { g.set(0, g.grad() * sign(g.input(0))); }
void neg_grad(GradientContext& g) { g.set(0, -g.grad()); }
void zero_grad(GradientContext& g) { g.set(0, zeros_like(g.input(0))); }
void square_grad(GradientContext& g) { g.set(0, g.grad() * (x_of(g) * 2)); }
void sqrt_grad(GradientContext& g) { g.set(0, sqrt_gradient(g.output(), g.grad())); }
void rsqrt_grad(GradientContext& g) { g.set(0, rsqrt_gradient(g.output(), g.grad())); }
void reciprocal_grad(GradientContext& g) { g.set(0, reciprocal_gradient(g.output(), g.grad())); }
void exp_grad(GradientContext& g) { g.set(0, g.grad() * y_of(g)); }
void expm1_grad(GradientContext& g) { g.set(0, g.grad() * exp(x_of(g))); }
void log_grad(GradientContext& g) { g.set(0, g.grad() * math::reciprocal(x_of(g))); }
void log1p_grad(GradientContext& g) { g.set(0, g.grad() * math::reciprocal(x_of(g) + 1)); }
void sin_grad(GradientContext& g) { g.set(0, g.grad() * cos(x_of(g))); }
void cos_grad(GradientContext& g) { g.set(0, -g.grad() * sin(x_of(g))); }
void tan_grad(GradientContext& g) { g.set(0, square(math::reciprocal(cos(x_of(g)))) * g.grad()); }
void asin_grad(GradientContext& g) {
  g.set(0, g.grad() * math::reciprocal(sqrt(1 - square(x_of(g)))));
}
void acos_grad(GradientContext& g) {
  g.set(0, -g.grad() * math::reciprocal(sqrt(1 - square(x_of(g)))));
}
void atan_grad(GradientContext& g) { g.set(0, g.grad() * math::reciprocal(square(x_of(g)) + 1)); }
void sinh_grad(GradientContext& g) { g.set(0, g.grad() * cosh(x_of(g))); }
void cosh_grad(GradientContext& g) { g.set(0, g.grad() * sinh(x_of(g))); }
void tanh_grad(GradientContext& g) { g.set(0, tanh_gradient(y_of(g), g.grad())); }
void asinh_grad(GradientContext& g) { g.set(0, g.grad() / cosh(y_of(g))); }
void acosh_grad(GradientContext& g) { g.set(0, g.grad() / sinh(y_of(g))); }
void atanh_grad(GradientContext& g) { g.set(0, g.grad() * math::reciprocal(1 - square(x_of(g)))); }
void sigmoid_grad(GradientContext& g) { g.set(0, sigmoid_gradient(y_of(g), g.grad())); }

constexpr double kTwoOverRootPi = 2 * std::numbers::inv_sqrtpi;
constexpr double kRootPiOverTwo = 1 / kTwoOverRootPi;
constexpr double kRootTwoPi = 2.5066282746310005024;

void erf_grad(GradientContext& g) {
  g.set(0, g.grad() * (exp(-square(g.input(0))) * kTwoOverRootPi));
}
void erfc_grad(GradientContext& g) {
  g.set(0, g.grad() * (exp(-square(g.input(0))) * -kTwoOverRootPi));
}
void erfinv_grad(GradientContext& g) {
  g.set(0, g.grad() * (exp(square(g.output())) * kRootPiOverTwo));
}
void ndtri_grad(GradientContext& g) {
  g.set(0, g.grad() * (exp(square(g.output()) * 0.5) * kRootTwoPi));
}
void lgamma_grad(GradientContext& g) { g.set(0, g.grad() * math::digamma(g.input(0))); }
void digamma_grad(GradientContext& g) {
  g.set(0, g.grad() * math::polygamma(ones_like(g.input(0)), g.input(0)));
}

constexpr OpDecl unary(const char* name, const char* attrs, GradientFn gradient, const char* doc,
                       RewriteFn fuse = nullptr) {
  return {.name = name,
          .inputs = "x: T",
          .outputs = "y: T",
          .attrs = attrs,
          .shape = shapes::unchanged,
          .gradient = gradient,
          .traits = {.elementwise = true, .may_reuse = 0b1},
          .fuse = fuse,
          .doc = doc};
}

// Declares an op that is exact or rounded once.
constexpr OpDecl exact_unary(const char* name, const char* attrs, GradientFn gradient,
                             const char* doc) {
  OpDecl decl = unary(name, attrs, gradient, doc);
  decl.traits.exact = Exactness::kAlways;
  return decl;
}

constexpr const char* kFloats = "T: {bfloat16, half, float, double}";
constexpr const char* kFloatsAndComplexes =
    "T: {bfloat16, half, float, double, complex64, complex128}";
constexpr const char* kSigned =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";

const OpRegistration kAbs(exact_unary(
    "Abs", "T: {bfloat16, half, float, double, int8, int16, int32, int64}", abs_grad, "|x|."));
const OpRegistration kNeg(exact_unary("Neg", kSigned, neg_grad, "-x."));
const OpRegistration kSign(exact_unary("Sign", kSigned, zero_grad,
                                       "-1, 0 or 1; of complex numbers x / |x|."));
const OpRegistration kSquare(exact_unary("Square", "T: numbers", square_grad, "x * x."));
const OpRegistration kSqrt(unary("Sqrt", kFloatsAndComplexes, sqrt_grad, "The square root."));
const OpRegistration kRsqrt(unary("Rsqrt", kFloatsAndComplexes, rsqrt_grad, "1 / sqrt(x)."));
const OpRegistration kReciprocal(unary("Reciprocal", kSigned, reciprocal_grad, "1 / x."));
const OpRegistration kInv(unary("Inv", kSigned, reciprocal_grad, "1 / x."));
const OpRegistration kExp(unary("Exp", kFloatsAndComplexes, exp_grad, "e to the power of x."));
const OpRegistration kExpm1(unary("Expm1", kFloatsAndComplexes, expm1_grad,
                                  "exp(x) - 1, accurate near 0."));
const OpRegistration kLog(unary("Log", kFloatsAndComplexes, log_grad, "The natural logarithm."));
const OpRegistration kLog1p(unary("Log1p", kFloatsAndComplexes, log1p_grad,
                                  "log(1 + x), accurate near 0."));
const OpRegistration kSin(unary("Sin", kFloatsAndComplexes, sin_grad, "The sine of x radians."));
const OpRegistration kCos(unary("Cos", kFloatsAndComplexes, cos_grad, "The cosine of x radians."));
const OpRegistration kTan(unary("Tan", kFloatsAndComplexes, tan_grad, "The tangent of x radians."));
const OpRegistration kAsin(unary("Asin", kFloatsAndComplexes, asin_grad,
                                 "The angle whose sine is x."));
const OpRegistration kAcos(unary("Acos", kFloatsAndComplexes, acos_grad,
                                 "The angle whose cosine is x."));
const OpRegistration kAtan(unary("Atan", kFloatsAndComplexes, atan_grad,
                                 "The angle whose tangent is x."));
const OpRegistration kSinh(unary("Sinh", kFloatsAndComplexes, sinh_grad, "The hyperbolic sine."));
const OpRegistration kCosh(unary("Cosh", kFloatsAndComplexes, cosh_grad, "The hyperbolic cosine."));
const OpRegistration kTanh(unary("Tanh", kFloatsAndComplexes, tanh_grad, "The hyperbolic tangent.",
                                 internal::fuse_activation));
const OpRegistration kAsinh(unary("Asinh", kFloatsAndComplexes, asinh_grad,
                                  "The inverse hyperbolic sine."));
const OpRegistration kAcosh(unary("Acosh", kFloatsAndComplexes, acosh_grad,
                                  "The inverse hyperbolic cosine."));
const OpRegistration kAtanh(unary("Atanh", kFloatsAndComplexes, atanh_grad,
                                  "The inverse hyperbolic tangent."));
const OpRegistration kSigmoid(unary("Sigmoid", kFloatsAndComplexes, sigmoid_grad,
                                    "1 / (1 + exp(-x)).", internal::fuse_activation));
const OpRegistration kErf(unary("Erf", kFloats, erf_grad, "The error function."));
const OpRegistration kErfc(unary("Erfc", kFloats, erfc_grad, "1 - erf(x), accurate for large x."));
const OpRegistration kErfinv(unary("Erfinv", kFloats, erfinv_grad, "The inverse of erf."));
const OpRegistration kNdtri(unary("Ndtri", kFloats, ndtri_grad,
                                  "The quantile of the standard normal distribution."));
const OpRegistration kLgamma(unary("Lgamma", kFloats, lgamma_grad, "log |Gamma(x)|."));
const OpRegistration kDigamma(unary("Digamma", kFloats, digamma_grad, "The derivative of lgamma."));
const OpRegistration kFloor(exact_unary("Floor", kFloats, not_differentiable,
                                        "Rounded towards minus infinity."));
const OpRegistration kCeil(exact_unary("Ceil", kFloats, not_differentiable,
                                       "Rounded towards plus infinity."));
const OpRegistration kRound(unary("Round", kSigned, not_differentiable,
                                  "The nearest integer, halves to the even one."));
const OpRegistration kRint(exact_unary("Rint", kFloats, not_differentiable,
                                       "The nearest integer, halves to the even one."));

constexpr OpDecl test(const char* name, const char* doc) {
  OpDecl decl = unary(name, kFloats, not_differentiable, doc);
  decl.outputs = "y: bool";
  return decl;
}
const OpRegistration kIsNan(test("IsNan", "true where x is NaN."));
const OpRegistration kIsInf(test("IsInf", "true where x is infinite."));
const OpRegistration kIsFinite(test("IsFinite", "true where x is neither infinite nor NaN."));

// ---- The gradients of some of the functions above, in terms of their result, as ops of their own.
// ----

void sqrt_grad_grad(GradientContext& g) {
  const Tensor ratio = g.grad() / g.input(0);
  if (g.needs(0)) g.set(0, -math::conj(ratio) * g.output());
  if (g.needs(1)) g.set(1, ratio * 0.5);
}
void rsqrt_grad_grad(GradientContext& g) {
  const Tensor y = math::conj(g.input(0));
  if (g.needs(0)) g.set(0, math::conj(g.grad()) * -1.5 * g.input(1) * square(y));
  if (g.needs(1)) g.set(1, rsqrt_gradient(y, g.grad()));
}
void reciprocal_grad_grad(GradientContext& g) {
  const Tensor y = math::conj(g.input(0));
  if (g.needs(0)) g.set(0, math::conj(g.grad()) * -2 * g.input(1) * y);
  if (g.needs(1)) g.set(1, reciprocal_gradient(y, g.grad()));
}
void tanh_grad_grad(GradientContext& g) {
  const Tensor y = math::conj(g.input(0)), dy = math::conj(g.input(1));
  if (g.needs(0)) g.set(0, g.grad() * -2 * dy * y);
  if (g.needs(1)) g.set(1, tanh_gradient(y, g.grad()));
}
void sigmoid_grad_grad(GradientContext& g) {
  const Tensor y = math::conj(g.input(0)), dy = math::conj(g.input(1));
  if (g.needs(0)) {
    const Tensor both = g.grad() * dy;
    g.set(0, both - both * 2 * y);
  }
  if (g.needs(1)) g.set(1, sigmoid_gradient(y, g.grad()));
}

void same_shapes(InferenceContext& c) { c.set_output(0, c.input(0).merge(c.input(1))); }

constexpr OpDecl gradient_op(const char* name, GradientFn gradient, const char* doc) {
  return {.name = name,
          .inputs = "y: T, dy: T",
          .outputs = "z: T",
          .attrs = kFloatsAndComplexes,
          .shape = same_shapes,
          .gradient = gradient,
          .traits = {.elementwise = true, .may_reuse = 0b11},
          .doc = doc};
}
const OpRegistration kSqrtGrad(gradient_op("SqrtGrad", sqrt_grad_grad,
                                           "dy / 2 / y: the gradient of y = sqrt(x)."));
const OpRegistration kRsqrtGrad(gradient_op(
    "RsqrtGrad", rsqrt_grad_grad, "-dy / 2 * y * y * y: the gradient of y = 1 / sqrt(x)."));
const OpRegistration kReciprocalGrad(gradient_op("ReciprocalGrad", reciprocal_grad_grad,
                                                 "-dy * y * y: the gradient of y = 1 / x."));
const OpRegistration kInvGrad(gradient_op("InvGrad", reciprocal_grad_grad,
                                          "-dy * y * y: the gradient of y = 1 / x."));
const OpRegistration kTanhGrad(gradient_op("TanhGrad", tanh_grad_grad,
                                           "dy * (1 - y * y): the gradient of y = tanh(x)."));
const OpRegistration kSigmoidGrad(gradient_op("SigmoidGrad", sigmoid_grad_grad,
                                              "dy * y * (1 - y): the gradient of y = sigmoid(x)."));

Tensor sqrt_gradient(Tensor y, Tensor dy) {
  return call1(kSqrtGrad, {std::move(y), std::move(dy)});
}
Tensor rsqrt_gradient(Tensor y, Tensor dy) {
  return call1(kRsqrtGrad, {std::move(y), std::move(dy)});
}
Tensor reciprocal_gradient(Tensor y, Tensor dy) {
  return call1(kReciprocalGrad, {std::move(y), std::move(dy)});
}
Tensor tanh_gradient(Tensor y, Tensor dy) {
  return call1(kTanhGrad, {std::move(y), std::move(dy)});
}
Tensor sigmoid_gradient(Tensor y, Tensor dy) {
  return call1(kSigmoidGrad, {std::move(y), std::move(dy)});
}

}  // namespace

Tensor abs(Tensor x) {
  if (!is_complex(x.dtype())) return call1(kAbs, {std::move(x)});
  const DType real = x.dtype() == DType::kComplex64 ? DType::kFloat : DType::kDouble;
  return std::move(raw_op("ComplexAbs", {std::move(x)}, {{"Tout", real}})[0]);
}
Tensor negative(Tensor x) { return call1(kNeg, {std::move(x)}); }
Tensor sign(Tensor x) { return call1(kSign, {std::move(x)}); }
Tensor square(Tensor x) { return call1(kSquare, {std::move(x)}); }
Tensor sqrt(Tensor x) { return call1(kSqrt, {std::move(x)}); }
Tensor exp(Tensor x) { return call1(kExp, {std::move(x)}); }
Tensor sin(Tensor x) { return call1(kSin, {std::move(x)}); }
Tensor cos(Tensor x) { return call1(kCos, {std::move(x)}); }
Tensor tan(Tensor x) { return call1(kTan, {std::move(x)}); }
Tensor asin(Tensor x) { return call1(kAsin, {std::move(x)}); }
Tensor acos(Tensor x) { return call1(kAcos, {std::move(x)}); }
Tensor atan(Tensor x) { return call1(kAtan, {std::move(x)}); }
Tensor sinh(Tensor x) { return call1(kSinh, {std::move(x)}); }
Tensor cosh(Tensor x) { return call1(kCosh, {std::move(x)}); }
Tensor tanh(Tensor x) { return call1(kTanh, {std::move(x)}); }
Tensor asinh(Tensor x) { return call1(kAsinh, {std::move(x)}); }
Tensor acosh(Tensor x) { return call1(kAcosh, {std::move(x)}); }
Tensor atanh(Tensor x) { return call1(kAtanh, {std::move(x)}); }
Tensor sigmoid(Tensor x) { return call1(kSigmoid, {std::move(x)}); }
Tensor floor(Tensor x) { return call1(kFloor, {std::move(x)}); }
Tensor round(Tensor x) {
  if (is_integer(x.dtype())) return x;
  return call1(kRound, {std::move(x)});
}

namespace math {
Tensor log(Tensor x) { return call1(kLog, {std::move(x)}); }
Tensor log1p(Tensor x) { return call1(kLog1p, {std::move(x)}); }
Tensor expm1(Tensor x) { return call1(kExpm1, {std::move(x)}); }
Tensor log_sigmoid(Tensor x) { return -nn::softplus(-std::move(x)); }
Tensor rsqrt(Tensor x) { return call1(kRsqrt, {std::move(x)}); }
Tensor reciprocal(Tensor x) { return call1(kReciprocal, {std::move(x)}); }
Tensor reciprocal_no_nan(Tensor x) { return divide_no_nan(1, std::move(x)); }
Tensor ceil(Tensor x) { return call1(kCeil, {std::move(x)}); }
Tensor rint(Tensor x) { return call1(kRint, {std::move(x)}); }
Tensor erf(Tensor x) { return call1(kErf, {std::move(x)}); }
Tensor erfc(Tensor x) { return call1(kErfc, {std::move(x)}); }
Tensor erfinv(Tensor x) { return call1(kErfinv, {std::move(x)}); }
// erfc(y) = x  <=>  ndtr(-y sqrt(2)) = x / 2.
Tensor erfcinv(Tensor x) { return ndtri(std::move(x) * 0.5) * -(1 / std::numbers::sqrt2); }
Tensor ndtri(Tensor x) { return call1(kNdtri, {std::move(x)}); }
Tensor lgamma(Tensor x) { return call1(kLgamma, {std::move(x)}); }
Tensor digamma(Tensor x) { return call1(kDigamma, {std::move(x)}); }
Tensor is_nan(Tensor x) { return call1(kIsNan, {std::move(x)}); }
Tensor is_inf(Tensor x) { return call1(kIsInf, {std::move(x)}); }
Tensor is_finite(Tensor x) { return call1(kIsFinite, {std::move(x)}); }
}  // namespace math

}  // namespace tandem
