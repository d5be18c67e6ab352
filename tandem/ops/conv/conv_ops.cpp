#include "tandem/ops/conv_ops.h"

#include "tandem/graph/op_decl.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/internal/conv_shapes.h"
#include "tandem/ops/internal/conv_util.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem::nn {
namespace {

void conv2d_grad(GradientContext& g);
void backprop_input_grad(GradientContext& g);
void backprop_filter_grad(GradientContext& g);

#define TANDEM_CONV_ATTRS                                                                       \
  "strides: list(int); use_cudnn_on_gpu: bool = true; padding: {'SAME', 'VALID', 'EXPLICIT'}; " \
  "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "                 \
  "dilations: list(int) = [1, 1, 1, 1]"

const OpRegistration kConv2D{{
    .name = "Conv2D",
    .inputs = "input: T, filter: T",
    .outputs = "output: T",
    .attrs = "T: {half, bfloat16, float, double, int32}; " TANDEM_CONV_ATTRS,
    .shape = shapes::conv2d,
    .gradient = conv2d_grad,
    .fuse = internal::fuse_convolution,
    .flops = flops::conv<>,
    .doc = "Two-dimensional convolution of images with filters [height, width, in / groups, out].",
}};

const OpRegistration kConv2DBackpropInput{{
    .name = "Conv2DBackpropInput",
    .inputs = "input_sizes: int32, filter: T, out_backprop: T",
    .outputs = "output: T",
    .attrs = "T: {half, bfloat16, float, double, int32}; " TANDEM_CONV_ATTRS,
    .shape = shapes::conv2d_backprop_input,
    .gradient = backprop_input_grad,
    .traits = {.host_inputs = 0b1},
    .flops = flops::conv_backprop_input<>,
    .doc = "The gradient of Conv2D with respect to its input, whose sizes are given.",
}};

const OpRegistration kConv2DBackpropFilter{{
    .name = "Conv2DBackpropFilter",
    .inputs = "input: T, filter_sizes: int32, out_backprop: T",
    .outputs = "output: T",
    .attrs = "T: {half, bfloat16, float, double}; " TANDEM_CONV_ATTRS,
    .shape = shapes::conv2d_backprop_filter,
    .gradient = backprop_filter_grad,
    .traits = {.host_inputs = 0b10},
    .flops = flops::conv_backprop_filter<>,
    .doc = "The gradient of Conv2D with respect to its filter, whose sizes are given.",
}};

#undef TANDEM_CONV_ATTRS

// Each of the three is linear in two of the others' arguments, so the gradients of each are the
// other two, with the same attributes.

void conv2d_grad(GradientContext& g) {
  const Tensor &x = g.input(0), &filter = g.input(1), grad = g.grad();
  if (g.needs(0)) {
    g.set(0, call1(kConv2DBackpropInput, {shape_vector(x), filter, grad}, g.attrs()));
  }
  if (g.needs(1)) {
    g.set(1, call1(kConv2DBackpropFilter, {x, shape_vector(filter), grad}, g.attrs()));
  }
}

void backprop_input_grad(GradientContext& g) {
  const Tensor &filter = g.input(1), &out_backprop = g.input(2), grad = g.grad();
  if (g.needs(1)) {
    g.set(1, call1(kConv2DBackpropFilter, {grad, shape_vector(filter), out_backprop}, g.attrs()));
  }
  if (g.needs(2)) g.set(2, call1(kConv2D, {grad, filter}, g.attrs()));
}

void backprop_filter_grad(GradientContext& g) {
  const Tensor &x = g.input(0), &out_backprop = g.input(2), grad = g.grad();
  if (g.needs(0)) {
    g.set(0, call1(kConv2DBackpropInput, {shape_vector(x), grad, out_backprop}, g.attrs()));
  }
  if (g.needs(2)) g.set(2, call1(kConv2D, {x, grad}, g.attrs()));
}

}  // namespace

Tensor conv2d(Tensor input, Tensor filters, Size2D strides, const Padding& padding,
              const Conv2DOptions& options) {
  return call1(kConv2D, {std::move(input), std::move(filters)},
               conv_attrs(strides, padding, options.data_format, options.dilations));
}

Tensor conv2d_transpose(Tensor input, Tensor filters, Tensor output_shape, Size2D strides,
                        const Padding& padding, const Conv2DOptions& options) {
  if (output_shape.dtype() != DType::kInt32)
    output_shape = cast(std::move(output_shape), DType::kInt32);
  return call1(kConv2DBackpropInput,
               {std::move(output_shape), std::move(filters), std::move(input)},
               conv_attrs(strides, padding, options.data_format, options.dilations));
}

Tensor separable_conv2d(Tensor input, Tensor depthwise_filters, Tensor pointwise_filters,
                        Size2D strides, const Padding& padding, const Conv2DOptions& options) {
  Tensor channels =
      depthwise_conv2d(std::move(input), std::move(depthwise_filters), strides, padding, options);
  return conv2d(std::move(channels), std::move(pointwise_filters), 1, "VALID",
                {.data_format = options.data_format});
}

}  // namespace tandem::nn
