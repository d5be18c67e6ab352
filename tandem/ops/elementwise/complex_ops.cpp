#include "tandem/ops/complex_ops.h"

#include <numbers>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

Tensor zero_of(const Tensor& like) { return internal::int_scalar(0, like.dtype()); }
Tensor as_complex(const Tensor& re) { return complex(re, zero_of(re)); }

void complex_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, sum_to_shape_of(math::real(g.grad()), g.input(0)));
  if (g.needs(1)) g.set(1, sum_to_shape_of(math::imag(g.grad()), g.input(1)));
}

void real_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, as_complex(g.grad()));
}

void imag_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, complex(zero_of(g.grad()), g.grad()));
}

void conj_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, math::conj(g.grad()));
}

void complex_abs_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  g.set(0, math::divide_no_nan(multiply(as_complex(g.grad()), g.input(0)), as_complex(g.output())));
}

void angle_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor turned = complex(math::imag(g.input(0)), math::real(g.input(0)));
  g.set(0, multiply(negative(as_complex(g.grad())), math::reciprocal(turned)));
}

const OpRegistration kComplex{{.name = "Complex",
                               .inputs = "real: T, imag: T",
                               .outputs = "out: Tout",
                               .attrs = "T: {float, double} = float; Tout: complexes = complex64",
                               .shape = shapes::broadcast_binary,
                               .gradient = complex_grad,
                               .traits = {.elementwise = true},
                               .doc = "real + i imag, broadcast."}};

OpDecl part(const char* name, const char* input, const char* output, GradientFn gradient,
            const char* doc) {
  return {.name = name,
          .inputs = input,
          .outputs = output,
          .attrs = "T: complexes = complex64; Tout: {float, double} = float",
          .shape = shapes::unchanged,
          .gradient = gradient,
          .traits = {.elementwise = true},
          .doc = doc};
}

const OpRegistration kReal{part("Real", "input: T", "output: Tout", real_grad, "The real part.")};
const OpRegistration kImag{
    part("Imag", "input: T", "output: Tout", imag_grad, "The imaginary part.")};
const OpRegistration kComplexAbs{
    part("ComplexAbs", "x: T", "y: Tout", complex_abs_grad, "The magnitude.")};
const OpRegistration kAngle{
    part("Angle", "input: T", "output: Tout", angle_grad, "The argument, in (-pi, pi].")};

const OpRegistration kConj{{.name = "Conj",
                            .inputs = "input: T",
                            .outputs = "output: T",
                            .attrs = "T: {complex64, complex128, variant} = complex64",
                            .shape = shapes::unchanged,
                            .gradient = conj_grad,
                            .traits = {.elementwise = true, .may_reuse = 0b1},
                            .doc = "The complex conjugate."}};

Tensor take_part(const OpRegistration& op, Tensor x) {
  const DType real = x.dtype() == complex128 ? float64 : float32;
  return call1(op, {std::move(x)}, {{"Tout", real}});
}

}  // namespace

Tensor complex(Operand real, Operand imag) {
  OperandPair parts = take_both(std::move(real), std::move(imag));
  const DType dtype = parts.x.dtype() == float64 ? complex128 : complex64;
  return call1(kComplex, {std::move(parts.x), std::move(parts.y)}, {{"Tout", dtype}});
}

namespace math {

Tensor real(Tensor x) { return is_complex(x.dtype()) ? take_part(kReal, std::move(x)) : x; }
Tensor imag(Tensor x) {
  return is_complex(x.dtype()) ? take_part(kImag, std::move(x)) : zeros_like(std::move(x));
}
Tensor conj(Tensor x) { return is_complex(x.dtype()) ? call1(kConj, {std::move(x)}) : x; }

Tensor angle(Tensor x) {
  if (is_complex(x.dtype())) return take_part(kAngle, std::move(x));
  if (!is_floating(x.dtype())) {
    throw InvalidArgumentError(cat("angle needs floating or complex values, not ", x.dtype(), "."));
  }
  const Tensor pi = constant(scalar(std::numbers::pi), x.dtype());
  return where(less(x, zero_of(x)), pi, zeros_like(x));
}

}  // namespace math
}  // namespace tandem
