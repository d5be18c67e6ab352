#include "tandem/ops/special_ops.h"

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/internal/call_binary.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::call_binary;

// With respect to q alone: TensorFlow has none towards the order either.
void zeta_grad(GradientContext& g) {
  const Tensor &x = g.input(0), &q = g.input(1);
  if (g.needs(1)) g.set(1, sum_to_shape_of(g.grad() * (-x * math::zeta(x + 1, q)), q, x));
}

void polygamma_grad(GradientContext& g) {
  const Tensor &a = g.input(0), &x = g.input(1);
  if (g.needs(1)) g.set(1, sum_to_shape_of(g.grad() * math::polygamma(a + 1, x), x, a));
}

void nextafter_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, sum_to_shape_of(g.grad(), g.input(0), g.input(1)));
  if (g.needs(1)) g.set(1, sum_to_shape_of(g.grad() * 0, g.input(1), g.input(0)));
}

constexpr OpTraits kElementwise{.elementwise = true, .may_reuse = 0b11};

const OpRegistration kZeta{{.name = "Zeta",
                            .inputs = "x: T, q: T",
                            .outputs = "z: T",
                            .attrs = "T: {float, double}",
                            .shape = shapes::broadcast_binary,
                            .gradient = zeta_grad,
                            .traits = kElementwise,
                            .doc = "The Hurwitz zeta function, broadcast."}};
const OpRegistration kPolygamma{{.name = "Polygamma",
                                 .inputs = "a: T, x: T",
                                 .outputs = "z: T",
                                 .attrs = "T: {float, double}",
                                 .shape = shapes::broadcast_binary,
                                 .gradient = polygamma_grad,
                                 .traits = kElementwise,
                                 .doc = "The derivative of order a of digamma at x, broadcast."}};
const OpRegistration kNextAfter{
    {.name = "NextAfter",
     .inputs = "x1: T, x2: T",
     .outputs = "output: T",
     .attrs = "T: {double, float} = float",
     .shape = shapes::broadcast_binary,
     .gradient = nextafter_grad,
     .traits = kElementwise,
     .doc = "The next number after x1 in the direction of x2, broadcast."}};

}  // namespace

namespace math {
Tensor zeta(Operand x, Operand q) { return call_binary(kZeta, std::move(x), std::move(q)); }
Tensor polygamma(Operand a, Operand x) {
  return call_binary(kPolygamma, std::move(a), std::move(x));
}
Tensor nextafter(Operand x1, Operand x2) {
  return call_binary(kNextAfter, std::move(x1), std::move(x2));
}
}  // namespace math

}  // namespace tandem
