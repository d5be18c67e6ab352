#include "tandem/ops/activation_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::op1;

// Gradients and values have one shape.
void grad_shape(InferenceContext& c) { c.set_output(0, c.input(0).merge(c.input(1))); }

// ---- Relu, Relu6, LeakyRelu: linear in pieces ----

void relu_gradient(GradientContext& g) { g.set(0, op1("ReluGrad", {g.grad(), g.output()})); }
void relu6_gradient(GradientContext& g) { g.set(0, op1("Relu6Grad", {g.grad(), g.output()})); }
void leaky_relu_gradient(GradientContext& g) {
  g.set(0, op1("LeakyReluGrad", {g.grad(), g.input(0)}, {{"alpha", g.attr<float>("alpha")}}));
}

// The gradient of a piecewise linear function is linear in the upstream gradient, and constant in
// the features.
void same_op_gradient(GradientContext& g) {
  AttrMap attrs;
  if (g.op().find_attr("alpha")) attrs.set("alpha", g.attr<float>("alpha"));
  if (g.needs(0)) g.set(0, op1(g.op().name, {g.grad(), g.input(1)}, attrs));
  if (g.needs(1)) g.set(1, op1("ZerosLike", {g.input(1)}));
}

const OpRegistration kRelu{
    {.name = "Relu",
     .inputs = "features: T",
     .outputs = "activations: T",
     .attrs = "T: reals",
     .shape = shapes::unchanged,
     .gradient = relu_gradient,
     .traits = {.elementwise = true, .exact = Exactness::kAlways, .may_reuse = 0b1},
     .fuse = internal::fuse_activation,
     .doc = "max(x, 0); NaN stays NaN."}};
const OpRegistration kReluGrad{
    {.name = "ReluGrad",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "T: reals",
     .shape = grad_shape,
     .gradient = same_op_gradient,
     .traits = {.elementwise = true, .may_reuse = 0b11},
     .doc = "The gradients where features > 0, else 0. Either Relu's input or output will do."}};

const OpRegistration kRelu6{{.name = "Relu6",
                             .inputs = "features: T",
                             .outputs = "activations: T",
                             .attrs = "T: reals",
                             .shape = shapes::unchanged,
                             .gradient = relu6_gradient,
                             .traits = {.elementwise = true, .may_reuse = 0b1},
                             .fuse = internal::fuse_activation,
                             .doc = "min(max(x, 0), 6); NaN stays NaN."}};
const OpRegistration kRelu6Grad{{.name = "Relu6Grad",
                                 .inputs = "gradients: T, features: T",
                                 .outputs = "backprops: T",
                                 .attrs = "T: reals",
                                 .shape = grad_shape,
                                 .gradient = same_op_gradient,
                                 .traits = {.elementwise = true, .may_reuse = 0b11},
                                 .doc = "The gradients where 0 < features < 6, else 0."}};

const OpRegistration kLeakyRelu{{.name = "LeakyRelu",
                                 .inputs = "features: T",
                                 .outputs = "activations: T",
                                 .attrs = "alpha: float = 0.2; T: floats = float",
                                 .shape = shapes::unchanged,
                                 .gradient = leaky_relu_gradient,
                                 .traits = {.elementwise = true, .may_reuse = 0b1},
                                 .fuse = internal::fuse_activation,
                                 .doc = "x where x > 0, else alpha * x."}};
const OpRegistration kLeakyReluGrad{
    {.name = "LeakyReluGrad",
     .inputs = "gradients: T, features: T",
     .outputs = "backprops: T",
     .attrs = "alpha: float = 0.2; T: floats = float",
     .shape = grad_shape,
     .gradient = same_op_gradient,
     .traits = {.elementwise = true, .may_reuse = 0b11},
     .doc = "The gradients where features > 0, else alpha times them."}};

// ---- Elu, Selu: exponential below zero, whose derivative follows from the output ----

void elu_gradient(GradientContext& g) { g.set(0, op1("EluGrad", {g.grad(), g.output()})); }
void selu_gradient(GradientContext& g) { g.set(0, op1("SeluGrad", {g.grad(), g.output()})); }

void exponential_grad_gradient(GradientContext& g) {
  const Tensor& outputs = g.input(1);
  if (g.needs(0)) g.set(0, op1(g.op().name, {g.grad(), outputs}));
  if (g.needs(1)) {
    const Tensor zeros = op1("ZerosLike", {outputs});
    g.set(1, op1("SelectV2", {op1("Less", {outputs, zeros}), g.grad() * g.input(0), zeros}));
  }
}

const OpRegistration kElu{{.name = "Elu",
                           .inputs = "features: T",
                           .outputs = "activations: T",
                           .attrs = "T: floats",
                           .shape = shapes::unchanged,
                           .gradient = elu_gradient,
                           .traits = {.elementwise = true, .may_reuse = 0b1},
                           .fuse = internal::fuse_activation,
                           .doc = "x where x >= 0, else exp(x) - 1."}};
const OpRegistration kEluGrad{{.name = "EluGrad",
                               .inputs = "gradients: T, outputs: T",
                               .outputs = "backprops: T",
                               .attrs = "T: floats",
                               .shape = grad_shape,
                               .gradient = exponential_grad_gradient,
                               .traits = {.elementwise = true, .may_reuse = 0b11},
                               .doc = "The gradient of Elu from its output."}};

const OpRegistration kSelu{{.name = "Selu",
                            .inputs = "features: T",
                            .outputs = "activations: T",
                            .attrs = "T: floats",
                            .shape = shapes::unchanged,
                            .gradient = selu_gradient,
                            .traits = {.elementwise = true, .may_reuse = 0b1},
                            .doc = "scale * x where x >= 0, else scale * alpha * (exp(x) - 1)."}};
const OpRegistration kSeluGrad{{.name = "SeluGrad",
                                .inputs = "gradients: T, outputs: T",
                                .outputs = "backprops: T",
                                .attrs = "T: floats",
                                .shape = grad_shape,
                                .gradient = exponential_grad_gradient,
                                .traits = {.elementwise = true, .may_reuse = 0b11},
                                .doc = "The gradient of Selu from its output."}};

// ---- Softplus, Softsign ----

void softplus_gradient(GradientContext& g) { g.set(0, g.grad() * op1("Sigmoid", {g.input(0)})); }

// The derivative of the sigmoid is 1 / (exp(-x) + 2 + exp(x)).
void softplus_grad_gradient(GradientContext& g) {
  const Tensor& x = g.input(1);
  if (g.needs(0)) g.set(0, op1("SoftplusGrad", {g.grad(), x}));
  if (g.needs(1)) g.set(1, g.grad() * g.input(0) / (exp(-x) + 2.0 + exp(x)));
}

void softsign_gradient(GradientContext& g) {
  g.set(0, op1("SoftsignGrad", {g.grad(), g.input(0)}));
}

// Towards x: d/dx 1 / (1 + |x|)^2 = -2 sign(x) / (1 + |x|)^3.
void softsign_grad_gradient(GradientContext& g) {
  const Tensor& x = g.input(1);
  if (g.needs(0)) g.set(0, op1("SoftsignGrad", {g.grad(), x}));
  if (g.needs(1)) {
    const Tensor scaled = op1("SoftsignGrad", {g.grad() * g.input(0), x});
    g.set(1, -2.0 * sign(x) * scaled / (1.0 + abs(x)));
  }
}

const OpRegistration kSoftplus{{.name = "Softplus",
                                .inputs = "features: T",
                                .outputs = "activations: T",
                                .attrs = "T: floats",
                                .shape = shapes::unchanged,
                                .gradient = softplus_gradient,
                                .traits = {.elementwise = true, .may_reuse = 0b1},
                                .doc = "log(1 + exp(x)), without overflow."}};
const OpRegistration kSoftplusGrad{{.name = "SoftplusGrad",
                                    .inputs = "gradients: T, features: T",
                                    .outputs = "backprops: T",
                                    .attrs = "T: floats",
                                    .shape = grad_shape,
                                    .gradient = softplus_grad_gradient,
                                    .traits = {.elementwise = true, .may_reuse = 0b11},
                                    .doc = "gradients / (1 + exp(-features))."}};

const OpRegistration kSoftsign{{.name = "Softsign",
                                .inputs = "features: T",
                                .outputs = "activations: T",
                                .attrs = "T: floats",
                                .shape = shapes::unchanged,
                                .gradient = softsign_gradient,
                                .traits = {.elementwise = true, .may_reuse = 0b1},
                                .doc = "x / (1 + |x|)."}};
const OpRegistration kSoftsignGrad{{.name = "SoftsignGrad",
                                    .inputs = "gradients: T, features: T",
                                    .outputs = "backprops: T",
                                    .attrs = "T: floats",
                                    .shape = grad_shape,
                                    .gradient = softsign_grad_gradient,
                                    .traits = {.elementwise = true, .may_reuse = 0b11},
                                    .doc = "gradients / (1 + |features|)^2."}};

}  // namespace

namespace nn {

Tensor relu(Tensor x) { return call1(kRelu, {std::move(x)}); }
Tensor relu6(Tensor x) { return call1(kRelu6, {std::move(x)}); }
Tensor leaky_relu(Tensor x, float alpha) {
  return call1(kLeakyRelu, {std::move(x)}, {{"alpha", alpha}});
}
Tensor elu(Tensor x) { return call1(kElu, {std::move(x)}); }
Tensor selu(Tensor x) { return call1(kSelu, {std::move(x)}); }
Tensor softplus(Tensor x) { return call1(kSoftplus, {std::move(x)}); }
Tensor softsign(Tensor x) { return call1(kSoftsign, {std::move(x)}); }

Tensor gelu(const Tensor& x, bool approximate) {
  if (approximate) {
    constexpr double kSqrtTwoOverPi = 0.7978845608028654;
    const Tensor inner = kSqrtTwoOverPi * (x + 0.044715 * (x * x * x));
    return 0.5 * x * (1.0 + tanh(inner));
  }
  constexpr double kSqrtHalf = 0.7071067811865476;
  return 0.5 * x * (1.0 + math::erf(x * kSqrtHalf));
}

Tensor swish(const Tensor& x, double beta) { return x * sigmoid(beta == 1.0 ? x : beta * x); }
Tensor silu(const Tensor& x, double beta) { return swish(x, beta); }

}  // namespace nn
}  // namespace tandem
