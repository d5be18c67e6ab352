#include "tandem/graph/op_decl.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/internal/conv_shapes.h"
#include "tandem/ops/internal/conv_util.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem::nn {
namespace {

void depthwise_grad(GradientContext& g);
void backprop_input_grad(GradientContext& g);
void backprop_filter_grad(GradientContext& g);

constexpr const char* kAttrs =
    "T: {half, bfloat16, float, double}; strides: list(int); padding: {'SAME', 'VALID', "
    "'EXPLICIT'}; "
    "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: "
    "list(int) "
    "= [1, 1, 1, 1]";

const OpRegistration kDepthwise{{
    .name = "DepthwiseConv2dNative",
    .inputs = "input: T, filter: T",
    .outputs = "output: T",
    .attrs = kAttrs,
    .shape = shapes::depthwise_conv2d,
    .gradient = depthwise_grad,
    .fuse = internal::fuse_convolution,
    .flops = flops::conv<true>,
    .doc = "Convolves each channel with its own filters [height, width, in, multiplier].",
}};

const OpRegistration kDepthwiseBackpropInput{{
    .name = "DepthwiseConv2dNativeBackpropInput",
    .inputs = "input_sizes: int32, filter: T, out_backprop: T",
    .outputs = "output: T",
    .attrs = kAttrs,
    .shape = shapes::conv2d_backprop_input,
    .gradient = backprop_input_grad,
    .traits = {.host_inputs = 0b1},
    .flops = flops::conv_backprop_input<true>,
    .doc =
        "The gradient of DepthwiseConv2dNative with respect to its input, whose sizes are given.",
}};

const OpRegistration kDepthwiseBackpropFilter{{
    .name = "DepthwiseConv2dNativeBackpropFilter",
    .inputs = "input: T, filter_sizes: int32, out_backprop: T",
    .outputs = "output: T",
    .attrs = kAttrs,
    .shape = shapes::conv2d_backprop_filter,
    .gradient = backprop_filter_grad,
    .traits = {.host_inputs = 0b10},
    .flops = flops::conv_backprop_filter<true>,
    .doc =
        "The gradient of DepthwiseConv2dNative with respect to its filter, whose sizes are given.",
}};

void depthwise_grad(GradientContext& g) {
  const Tensor &x = g.input(0), &filter = g.input(1), grad = g.grad();
  if (g.needs(0)) {
    g.set(0, call1(kDepthwiseBackpropInput, {shape_vector(x), filter, grad}, g.attrs()));
  }
  if (g.needs(1)) {
    g.set(1, call1(kDepthwiseBackpropFilter, {x, shape_vector(filter), grad}, g.attrs()));
  }
}

void backprop_input_grad(GradientContext& g) {
  const Tensor &filter = g.input(1), &out_backprop = g.input(2), grad = g.grad();
  if (g.needs(1)) {
    g.set(1,
          call1(kDepthwiseBackpropFilter, {grad, shape_vector(filter), out_backprop}, g.attrs()));
  }
  if (g.needs(2)) g.set(2, call1(kDepthwise, {grad, filter}, g.attrs()));
}

void backprop_filter_grad(GradientContext& g) {
  const Tensor &x = g.input(0), &out_backprop = g.input(2), grad = g.grad();
  if (g.needs(0)) {
    g.set(0, call1(kDepthwiseBackpropInput, {shape_vector(x), grad, out_backprop}, g.attrs()));
  }
  if (g.needs(2)) g.set(2, call1(kDepthwise, {x, grad}, g.attrs()));
}

}  // namespace

Tensor depthwise_conv2d(Tensor input, Tensor filters, Size2D strides, const Padding& padding,
                        const Conv2DOptions& options) {
  return call1(kDepthwise, {std::move(input), std::move(filters)},
               conv_attrs(strides, padding, options.data_format, options.dilations));
}

}  // namespace tandem::nn
