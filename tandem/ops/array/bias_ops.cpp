// BiasAdd and its gradient; td::nn::bias_add.

#include <string>
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::op1;

template <class C>
std::string format_of(const C& c) {
  return c.op().find_attr("data_format") ? c.template attr<std::string>("data_format") : "NHWC";
}

// The axis of the channels; -1 where the rank is unknown.
int channel_axis(const InferenceContext& c) {
  c.require_rank_at_least(0, 2);
  if (!c.input(0).has_rank()) return -1;
  return format_of(c) == "NCHW" ? 1 : c.input(0).rank() - 1;
}

void bias_add_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  PartialShape out = c.input(0);
  const int axis = channel_axis(c);
  if (axis >= 0 && c.input(1).has_rank()) {
    out.set_dim(axis, c.merge_dim(out.dim(axis), c.input(1).dim(0), "channels and biases"));
  }
  c.set_output(0, std::move(out));
}

void bias_add_grad_shape(InferenceContext& c) {
  const int axis = channel_axis(c);
  c.set_output(0, PartialShape({axis >= 0 ? c.input(0).dim(axis) : PartialShape::kUnknown}));
}

void bias_add_gradient(GradientContext& g) {
  const Tensor grad = g.grad();
  if (g.needs(0)) g.set(0, grad);
  if (g.needs(1)) g.set(1, op1("BiasAddGrad", {grad}, {{"data_format", format_of(g)}}));
}

// Every element of the input adds to its channel's sum, so it gets that channel's gradient.
void bias_add_grad_gradient(GradientContext& g) {
  Tensor grad = g.grad();
  const Tensor sizes = shape(g.input(0));
  if (format_of(g) == "NCHW") {
    const Tensor ones =
        op1("Fill", {reshape(op1("Sub", {rank(g.input(0)), Tensor(2)}), {1}), Tensor(1)});
    grad = reshape(grad, concat({shape(grad), ones}, 0));
  }
  g.set(0, broadcast_to(grad, sizes));
}

const OpRegistration kBiasAdd{
    {.name = "BiasAdd",
     .inputs = "value: T, bias: T",
     .outputs = "output: T",
     .attrs = "T: numbers; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     .shape = bias_add_shape,
     .gradient = bias_add_gradient,
     .traits = {.may_reuse = 0b1},
     .fuse = internal::fuse_bias,
     .doc = "A vector added to the channels of a value of rank 2 or more."}};

const OpRegistration kBiasAddV1{{.name = "BiasAddV1",
                                 .inputs = "value: T, bias: T",
                                 .outputs = "output: T",
                                 .attrs = "T: numbers",
                                 .shape = bias_add_shape,
                                 .gradient = bias_add_gradient,
                                 .traits = {.may_reuse = 0b1},
                                 .doc = "A vector added along the last axis."}};

const OpRegistration kBiasAddGrad{
    {.name = "BiasAddGrad",
     .inputs = "out_backprop: T",
     .outputs = "output: T",
     .attrs = "T: numbers; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
     .shape = bias_add_grad_shape,
     .gradient = bias_add_grad_gradient,
     .traits = {.joins = ReductionKind::kSumOfChannels},
     .doc = "The gradient of BiasAdd towards the bias: sums over all axes but the channels'."}};

}  // namespace

namespace nn {

Tensor bias_add(Tensor value, Tensor bias, StringView data_format) {
  return call1(kBiasAdd, {std::move(value), std::move(bias)}, {{"data_format", data_format}});
}

}  // namespace nn
}  // namespace tandem
