#include "tandem/ops/bessel_ops.h"

#include <numbers>
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/call_binary.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::call_binary;
using internal::op1;
namespace special = math::special;

const Tensor& x_of(const GradientContext& g) { return g.input(0); }
const Tensor& y_of(const GradientContext& g) { return g.output(); }

void i0_grad(GradientContext& g) { g.set(0, g.grad() * math::bessel_i1(x_of(g))); }
void i0e_grad(GradientContext& g) {
  g.set(0, g.grad() * (math::bessel_i1e(x_of(g)) - sign(x_of(g)) * y_of(g)));
}
// `at_zero` where x is 0 and the formula divides by it. TensorFlow's numbers.
Tensor unless_zero(const GradientContext& g, double at_zero, const Tensor& value) {
  return where(equal(x_of(g), 0), at_zero, value);
}
void i1_grad(GradientContext& g) {
  g.set(0, g.grad() * unless_zero(g, 1.0, math::bessel_i0(x_of(g)) - y_of(g) / x_of(g)));
}
void i1e_grad(GradientContext& g) {
  const Tensor slope =
      math::bessel_i0e(x_of(g)) - y_of(g) * (sign(x_of(g)) + math::reciprocal(x_of(g)));
  g.set(0, g.grad() * unless_zero(g, 0.5, slope));
}
void k0_grad(GradientContext& g) { g.set(0, -g.grad() * special::bessel_k1(x_of(g))); }
void k0e_grad(GradientContext& g) { g.set(0, g.grad() * (y_of(g) - special::bessel_k1e(x_of(g)))); }
void k1_grad(GradientContext& g) {
  g.set(0, g.grad() * (-special::bessel_k0(x_of(g)) - y_of(g) / x_of(g)));
}
void k1e_grad(GradientContext& g) {
  g.set(0, g.grad() * (y_of(g) * (1 - math::reciprocal(x_of(g))) - special::bessel_k0e(x_of(g))));
}
void j0_grad(GradientContext& g) { g.set(0, -g.grad() * special::bessel_j1(x_of(g))); }
void j1_grad(GradientContext& g) {
  g.set(0, g.grad() * unless_zero(g, 0.5, special::bessel_j0(x_of(g)) - y_of(g) / x_of(g)));
}
void y0_grad(GradientContext& g) { g.set(0, -g.grad() * special::bessel_y1(x_of(g))); }
void y1_grad(GradientContext& g) {
  g.set(0, g.grad() * (special::bessel_y0(x_of(g)) - y_of(g) / x_of(g)));
}
void dawsn_grad(GradientContext& g) { g.set(0, g.grad() * (1 - x_of(g) * y_of(g) * 2)); }
void expint_grad(GradientContext& g) { g.set(0, g.grad() * exp(x_of(g)) / x_of(g)); }
void fresnel_cos_grad(GradientContext& g) {
  g.set(0, g.grad() * cos(square(x_of(g)) * (std::numbers::pi / 2)));
}
void fresnel_sin_grad(GradientContext& g) {
  g.set(0, g.grad() * sin(square(x_of(g)) * (std::numbers::pi / 2)));
}
void spence_grad(GradientContext& g) {
  const Tensor& x = x_of(g);
  g.set(0, g.grad() * where(equal(x, 1), -1.0, math::log(x) / (1 - x)));
}

// The density of the gamma distribution.
Tensor gamma_density(const Tensor& a, const Tensor& x) {
  return exp(-x + (a - 1) * math::log(x) - math::lgamma(a));
}
void set_gamma_grads(GradientContext& g, const Tensor& grad) {
  const Tensor &a = g.input(0), &x = g.input(1);
  if (g.needs(0)) g.set(0, sum_to_shape_of(grad * op1("IgammaGradA", {a, x}), a, x));
  if (g.needs(1)) g.set(1, sum_to_shape_of(grad * gamma_density(a, x), x, a));
}
void igamma_grad(GradientContext& g) { set_gamma_grads(g, g.grad()); }
void igammac_grad(GradientContext& g) { set_gamma_grads(g, -g.grad()); }

void betainc_shape(InferenceContext& c) {
  PartialShape out = PartialShape::scalar();
  bool unknown = false, found = false;
  for (int i = 0; i < 3; ++i) {
    const PartialShape& in = c.input(i);
    if (!in.has_rank()) {
      unknown = true;
    } else if (in.rank() > 0) {
      out = found ? out.merge(in) : in;
      found = true;
    }
  }
  c.set_output(0, unknown && !found ? PartialShape::unknown() : out);
}

void betainc_grad(GradientContext& g) {
  const Tensor &a = g.input(0), &b = g.input(1), &x = g.input(2);
  if (!g.needs(2)) return;
  const Tensor log_beta = math::lgamma(a) + math::lgamma(b) - math::lgamma(a + b);
  // At the ends 0 · log(0) is 0: there the slope is finite where a or b is 1.
  const Tensor slope = exp(math::xlog1py(b - 1, -x) + math::xlogy(a - 1, x) - log_beta);
  g.set(2, sum_to_shape_of(g.grad() * slope, x));
}

constexpr OpDecl unary(const char* name, GradientFn gradient, const char* doc) {
  return {.name = name,
          .inputs = "x: T",
          .outputs = "y: T",
          .attrs = "T: {bfloat16, half, float, double}",
          .shape = shapes::unchanged,
          .gradient = gradient,
          .traits = {.elementwise = true, .may_reuse = 0b1},
          .doc = doc};
}
constexpr OpDecl binary(const char* name, const char* inputs, const char* output, const char* attrs,
                        GradientFn gradient, const char* doc) {
  return {.name = name,
          .inputs = inputs,
          .outputs = output,
          .attrs = attrs,
          .shape = shapes::broadcast_binary,
          .gradient = gradient,
          .traits = {.elementwise = true, .may_reuse = 0b11},
          .doc = doc};
}

const OpRegistration kI0(unary("BesselI0", i0_grad, "The modified Bessel function I0."));
const OpRegistration kI0e(unary("BesselI0e", i0e_grad, "exp(-|x|) I0(x)."));
const OpRegistration kI1(unary("BesselI1", i1_grad, "The modified Bessel function I1."));
const OpRegistration kI1e(unary("BesselI1e", i1e_grad, "exp(-|x|) I1(x)."));
const OpRegistration kJ0(unary("BesselJ0", j0_grad, "The Bessel function J0."));
const OpRegistration kJ1(unary("BesselJ1", j1_grad, "The Bessel function J1."));
const OpRegistration kK0(unary("BesselK0", k0_grad, "The modified Bessel function K0."));
const OpRegistration kK0e(unary("BesselK0e", k0e_grad, "exp(x) K0(x)."));
const OpRegistration kK1(unary("BesselK1", k1_grad, "The modified Bessel function K1."));
const OpRegistration kK1e(unary("BesselK1e", k1e_grad, "exp(x) K1(x)."));
const OpRegistration kY0(unary("BesselY0", y0_grad, "The Bessel function Y0."));
const OpRegistration kY1(unary("BesselY1", y1_grad, "The Bessel function Y1."));
const OpRegistration kDawsn(unary("Dawsn", dawsn_grad, "Dawson's integral."));
const OpRegistration kExpint(unary("Expint", expint_grad, "The exponential integral Ei."));
const OpRegistration kFresnelCos(unary("FresnelCos", fresnel_cos_grad,
                                       "The integral of cos(pi t² / 2)."));
const OpRegistration kFresnelSin(unary("FresnelSin", fresnel_sin_grad,
                                       "The integral of sin(pi t² / 2)."));
const OpRegistration kSpence(unary("Spence", spence_grad,
                                   "The integral of log(t) / (1 - t) from 1."));

constexpr const char* kFloats = "T: {bfloat16, half, float, double}";
const OpRegistration kIgamma(binary("Igamma", "a: T, x: T", "z: T", kFloats, igamma_grad,
                                    "The regularised lower incomplete gamma function."));
const OpRegistration kIgammac(binary("Igammac", "a: T, x: T", "z: T", kFloats, igammac_grad,
                                     "The regularised upper incomplete gamma function."));
const OpRegistration kIgammaGradA(binary("IgammaGradA", "a: T, x: T", "z: T", "T: {float, double}",
                                         nullptr, "The derivative of igamma(a, x) in a."));
const OpRegistration kRandomGammaGrad(
    binary("RandomGammaGrad", "alpha: T, sample: T", "output: T", "T: {float, double}", nullptr,
           "The derivative in alpha of a sample of the gamma distribution."));

const OpRegistration kBetainc{{.name = "Betainc",
                               .inputs = "a: T, b: T, x: T",
                               .outputs = "z: T",
                               .attrs = "T: {float, double}",
                               .shape = betainc_shape,
                               .gradient = betainc_grad,
                               .doc = "The regularised incomplete beta integral."}};

const OpRegistration kPopulationCount{
    {.name = "PopulationCount",
     .inputs = "x: T",
     .outputs = "y: uint8",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     .shape = shapes::unchanged,
     .gradient = not_differentiable,
     .traits = {.elementwise = true},
     .doc = "The number of bits that are set."}};

}  // namespace

namespace math {

Tensor bessel_i0(Tensor x) { return call1(kI0, {std::move(x)}); }
Tensor bessel_i0e(Tensor x) { return call1(kI0e, {std::move(x)}); }
Tensor bessel_i1(Tensor x) { return call1(kI1, {std::move(x)}); }
Tensor bessel_i1e(Tensor x) { return call1(kI1e, {std::move(x)}); }
Tensor igamma(Operand a, Operand x) { return call_binary(kIgamma, std::move(a), std::move(x)); }
Tensor igammac(Operand a, Operand x) { return call_binary(kIgammac, std::move(a), std::move(x)); }
Tensor betainc(Tensor a, Tensor b, Tensor x) {
  return call1(kBetainc, {std::move(a), std::move(b), std::move(x)});
}

namespace special {
Tensor bessel_j0(Tensor x) { return call1(kJ0, {std::move(x)}); }
Tensor bessel_j1(Tensor x) { return call1(kJ1, {std::move(x)}); }
Tensor bessel_y0(Tensor x) { return call1(kY0, {std::move(x)}); }
Tensor bessel_y1(Tensor x) { return call1(kY1, {std::move(x)}); }
Tensor bessel_k0(Tensor x) { return call1(kK0, {std::move(x)}); }
Tensor bessel_k0e(Tensor x) { return call1(kK0e, {std::move(x)}); }
Tensor bessel_k1(Tensor x) { return call1(kK1, {std::move(x)}); }
Tensor bessel_k1e(Tensor x) { return call1(kK1e, {std::move(x)}); }
Tensor dawsn(Tensor x) { return call1(kDawsn, {std::move(x)}); }
Tensor expint(Tensor x) { return call1(kExpint, {std::move(x)}); }
Tensor fresnel_cos(Tensor x) { return call1(kFresnelCos, {std::move(x)}); }
Tensor fresnel_sin(Tensor x) { return call1(kFresnelSin, {std::move(x)}); }
Tensor spence(Tensor x) { return call1(kSpence, {std::move(x)}); }
}  // namespace special
}  // namespace math

Tensor bitwise::population_count(Tensor x) { return call1(kPopulationCount, {std::move(x)}); }

}  // namespace tandem
