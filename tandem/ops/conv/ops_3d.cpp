#include "tandem/ops/ops_3d.h"

#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/internal/window3d.h"
#include "tandem/ops/internal/conv_util.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem::nn {
namespace {

using internal::op1;

// ---- Shapes ----

void conv_shape(InferenceContext& c) {
  c.require_rank(0, 5);
  c.require_rank(1, 5);
  const Window3D w = read_conv3d_attrs(c);
  const PartialShape &in = c.input(0), &filter = c.input(1);
  const std::int64_t depth = in.dim(w.channel_axis()), filter_depth = filter.dim(3);
  if (depth > 0 && filter_depth > 0 && depth % filter_depth != 0) {
    c.fail(cat("Depth of input (", depth, ") is not a multiple of input depth of filter (",
               filter_depth, ")"));
  }
  std::int64_t spatial[3];
  for (int i = 0; i < 3; ++i) {
    spatial[i] = w.axis(i, in.dim(w.spatial_axis(i)), filter.dim(i)).output;
  }
  c.set_output(0, w.make_shape<PartialShape>(in.dim(0), spatial, filter.dim(4)));
}

void sizes_shape(InferenceContext& c, int sizes) {
  for (int i = 0; i < 3; ++i) c.require_rank(i, i == sizes ? 1 : 5);
  const PartialShape out = c.input_as_shape(sizes);
  if (out.has_rank() && out.rank() != 5) c.fail("the sizes of a volume must be 5");
  c.set_output(0, out.has_rank() ? out : PartialShape::unknown_of_rank(5));
}
void input_sizes_shape(InferenceContext& c) { sizes_shape(c, 0); }
void filter_sizes_shape(InferenceContext& c) { sizes_shape(c, 1); }

void pool_shape(InferenceContext& c) {
  c.require_rank(0, 5);
  const Window3D w = read_pool3d_attrs(c);
  const PartialShape& in = c.input(0);
  std::int64_t spatial[3];
  for (int i = 0; i < 3; ++i) {
    spatial[i] = w.axis(i, in.dim(w.spatial_axis(i)), w.ksize[i]).output;
  }
  c.set_output(0, w.make_shape<PartialShape>(in.dim(0), spatial, in.dim(w.channel_axis())));
}

template <int kLike>
void volume_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) c.require_rank(i, 5);
  const PartialShape& like = c.input(kLike);
  c.set_output(0, like.has_rank() ? like : PartialShape::unknown_of_rank(5));
}

void avg_grad_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 5);
  const PartialShape out = c.input_as_shape(0);
  c.set_output(0, out.has_rank() && out.rank() == 5 ? out : PartialShape::unknown_of_rank(5));
}

// ---- Gradients ----

AttrMap only(const GradientContext& g, std::initializer_list<const char*> names) {
  AttrMap attrs;
  for (const char* name : names) attrs.set(name, *g.find_attr(name));
  return attrs;
}
AttrMap conv_attrs(const GradientContext& g) {
  return only(g, {"strides", "padding", "data_format", "dilations"});
}
AttrMap pool_attrs(const GradientContext& g) {
  return only(g, {"ksize", "strides", "padding", "data_format"});
}

Tensor backprop_input(const GradientContext& g, const Tensor& sizes_of, const Tensor& filter,
                      const Tensor& grad) {
  return op1("Conv3DBackpropInputV2", {shape_vector(sizes_of), filter, grad}, conv_attrs(g));
}
Tensor backprop_filter(const GradientContext& g, const Tensor& image, const Tensor& sizes_of,
                       const Tensor& grad) {
  return op1("Conv3DBackpropFilterV2", {image, shape_vector(sizes_of), grad}, conv_attrs(g));
}

void conv_grad(GradientContext& g) {
  const Tensor grad = g.grad();
  if (g.needs(0)) g.set(0, backprop_input(g, g.input(0), g.input(1), grad));
  if (g.needs(1)) g.set(1, backprop_filter(g, g.input(0), g.input(1), grad));
}
void backprop_input_grad(GradientContext& g) {
  const Tensor grad = g.grad();
  if (g.needs(1)) g.set(1, backprop_filter(g, grad, g.input(1), g.input(2)));
  if (g.needs(2)) g.set(2, op1("Conv3D", {grad, g.input(1)}, conv_attrs(g)));
}
void backprop_filter_grad(GradientContext& g) {
  const Tensor grad = g.grad();
  if (g.needs(0)) g.set(0, backprop_input(g, g.input(0), grad, g.input(2)));
  if (g.needs(2)) g.set(2, op1("Conv3D", {g.input(0), grad}, conv_attrs(g)));
}

void max_pool_grad(GradientContext& g) {
  g.set(0, op1("MaxPool3DGrad", {g.input(0), g.output(), g.grad()}, pool_attrs(g)));
}
// Small changes of the values change no choice: only the gradient itself has a derivative.
void second_max_grad(GradientContext& g, const char* op) {
  if (g.needs(0)) g.set(0, op1("ZerosLike", {g.input(0)}));
  if (g.needs(1)) g.set(1, op1("ZerosLike", {g.input(1)}));
  if (g.needs(2)) g.set(2, op1(op, {g.input(0), g.input(1), g.grad()}, pool_attrs(g)));
}
void max_pool_grad_grad(GradientContext& g) { second_max_grad(g, "MaxPool3DGradGrad"); }
void max_pool_grad_grad_grad(GradientContext& g) { second_max_grad(g, "MaxPool3DGrad"); }

void avg_pool_grad(GradientContext& g) {
  g.set(0, op1("AvgPool3DGrad", {shape_vector(g.input(0)), g.grad()}, pool_attrs(g)));
}
void avg_pool_grad_grad(GradientContext& g) {
  if (g.needs(1)) g.set(1, op1("AvgPool3D", {g.grad()}, pool_attrs(g)));
}

// ---- Declarations ----

#define TANDEM_CONV3D                                                       \
  "T: {half, bfloat16, float, double}; strides: list(int) >= 5; "           \
  "padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; " \
  "dilations: list(int) = [1, 1, 1, 1, 1]"
#define TANDEM_POOL3D                                                                         \
  "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: " \
  "{'NDHWC', 'NCDHW'} = 'NDHWC'; "

const OpRegistration kConv{{.name = "Conv3D",
                            .inputs = "input: T, filter: T",
                            .outputs = "output: T",
                            .attrs = TANDEM_CONV3D,
                            .shape = conv_shape,
                            .gradient = conv_grad,
                            .flops = flops::conv<>,
                            .doc = "Three-dimensional convolution of volumes with filters "
                                   "[planes, rows, columns, in / groups, out]."}};
const OpRegistration kConvInput{
    {.name = "Conv3DBackpropInputV2",
     .inputs = "input_sizes: Tshape, filter: T, out_backprop: T",
     .outputs = "output: T",
     .attrs = TANDEM_CONV3D "; Tshape: {int32, int64} = int32",
     .shape = input_sizes_shape,
     .gradient = backprop_input_grad,
     .traits = {.host_inputs = 0b1},
     .flops = flops::conv_backprop_input<>,
     .doc = "The gradient of Conv3D with respect to its input, whose sizes are given."}};
const OpRegistration kConvFilter{
    {.name = "Conv3DBackpropFilterV2",
     .inputs = "input: T, filter_sizes: int32, out_backprop: T",
     .outputs = "output: T",
     .attrs = TANDEM_CONV3D,
     .shape = filter_sizes_shape,
     .gradient = backprop_filter_grad,
     .traits = {.host_inputs = 0b10},
     .flops = flops::conv_backprop_filter<>,
     .doc = "The gradient of Conv3D with respect to its filter, whose sizes are given."}};

const OpRegistration kMaxPool{{.name = "MaxPool3D",
                               .inputs = "input: T",
                               .outputs = "output: T",
                               .attrs = TANDEM_POOL3D "T: {half, bfloat16, float}",
                               .shape = pool_shape,
                               .gradient = max_pool_grad,
                               .flops = flops::pool,
                               .doc = "The largest value of each window of a volume."}};
const OpRegistration kMaxPoolGrad{
    {.name = "MaxPool3DGrad",
     .inputs = "orig_input: TInput, orig_output: TInput, grad: T",
     .outputs = "output: T",
     .attrs = TANDEM_POOL3D
     "T: {half, bfloat16, float} = float; TInput: {half, bfloat16, float} = float",
     .shape = volume_shape<0>,
     .gradient = max_pool_grad_grad,
     .flops = flops::pool_grad<1>,
     .doc = "The gradient of MaxPool3D."}};
const OpRegistration kMaxPoolGradGrad{{.name = "MaxPool3DGradGrad",
                                       .inputs = "orig_input: T, orig_output: T, grad: T",
                                       .outputs = "output: T",
                                       .attrs = TANDEM_POOL3D "T: reals",
                                       .shape = volume_shape<1>,
                                       .gradient = max_pool_grad_grad_grad,
                                       .flops = flops::pool_grad<1>,
                                       .doc = "The gradient of MaxPool3DGrad."}};
const OpRegistration kAvgPool{{.name = "AvgPool3D",
                               .inputs = "input: T",
                               .outputs = "output: T",
                               .attrs = TANDEM_POOL3D "T: {half, bfloat16, float, double}",
                               .shape = pool_shape,
                               .gradient = avg_pool_grad,
                               .flops = flops::pool,
                               .doc = "The mean of each window of a volume, padding left out."}};
const OpRegistration kAvgPoolGrad{{.name = "AvgPool3DGrad",
                                   .inputs = "orig_input_shape: int32, grad: T",
                                   .outputs = "output: T",
                                   .attrs = TANDEM_POOL3D "T: {half, bfloat16, float, double}",
                                   .shape = avg_grad_shape,
                                   .gradient = avg_pool_grad_grad,
                                   .traits = {.host_inputs = 0b1},
                                   .flops = flops::pool_grad<1>,
                                   .doc = "The gradient of AvgPool3D."}};

std::vector<std::int64_t> five(const Size3D& size, std::string_view data_format) {
  if (data_format == "NCDHW") return {1, 1, size[0], size[1], size[2]};
  return {1, size[0], size[1], size[2], 1};
}

AttrMap conv_attrs(const Size3D& strides, std::string_view padding,
                   const Volume3DOptions& options) {
  return {{"strides", five(strides, options.data_format)},
          {"padding", padding},
          {"data_format", options.data_format},
          {"dilations", five(options.dilations, options.data_format)}};
}

AttrMap pool_attrs(const Size3D& ksize, const Size3D& strides, std::string_view padding,
                   std::string_view data_format) {
  return {{"ksize", five(ksize, data_format)},
          {"strides", five(strides, data_format)},
          {"padding", padding},
          {"data_format", data_format}};
}

}  // namespace

Tensor conv3d(Tensor input, Tensor filters, const Size3D& strides, StringView padding,
              const Volume3DOptions& options) {
  return call1(kConv, {std::move(input), std::move(filters)},
               conv_attrs(strides, padding, options));
}

Tensor conv3d_transpose(Tensor input, Tensor filters, Tensor output_shape, const Size3D& strides,
                        StringView padding, const Volume3DOptions& options) {
  return call1(kConvInput, {std::move(output_shape), std::move(filters), std::move(input)},
               conv_attrs(strides, padding, options));
}

Tensor max_pool3d(Tensor input, const Size3D& ksize, const Size3D& strides, StringView padding,
                  StringView data_format) {
  return call1(kMaxPool, {std::move(input)}, pool_attrs(ksize, strides, padding, data_format));
}

Tensor avg_pool3d(Tensor input, const Size3D& ksize, const Size3D& strides, StringView padding,
                  StringView data_format) {
  return call1(kAvgPool, {std::move(input)}, pool_attrs(ksize, strides, padding, data_format));
}

}  // namespace tandem::nn
