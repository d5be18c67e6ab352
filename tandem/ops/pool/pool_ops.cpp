#include "tandem/ops/pool_ops.h"

#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/internal/window.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::op1;
using Ints = std::vector<std::int64_t>;

// ---- Shapes ----

void pooled_shape(InferenceContext& c, const WindowAttrs& w, bool known_window) {
  c.require_rank(0, 4);
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown_of_rank(4));
  std::int64_t size[2] = {PartialShape::kUnknown, PartialShape::kUnknown};
  for (int i = 0; i < 2 && known_window; ++i) {
    size[i] = w.axis(i, in.dim(w.spatial_axis(i)), w.ksize[i]).output;
  }
  c.set_output(0,
               w.make_shape<PartialShape>(in.dim(0), size[0], size[1], in.dim(w.channel_axis())));
}

bool has_explicit_paddings(const InferenceContext& c) {
  return c.op().find_attr("explicit_paddings") != nullptr;
}

void pool_shape(InferenceContext& c) {
  pooled_shape(c, read_pool_attrs(c, has_explicit_paddings(c)), true);
}

void pool_v2_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  c.require_rank(2, 1);
  WindowAttrs w = read_pool_attrs(c, false, false);
  const auto ksize = c.input_ints(1);
  const auto strides = c.input_ints(2);
  if (ksize) w.set_ksize(*ksize);
  if (strides) w.set_strides(*strides);
  pooled_shape(c, w, ksize && strides);
}

// The shape of the image that was pooled.
void image_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 4);
  c.require_rank(2, 4);
  c.set_output(0, c.input(0).has_rank() ? c.input(0) : PartialShape::unknown_of_rank(4));
}

// The shape of the pooled values.
void windows_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 4);
  c.require_rank(2, 4);
  c.set_output(0, c.input(1).has_rank() ? c.input(1) : PartialShape::unknown_of_rank(4));
}

void avg_pool_grad_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 4);
  if (const auto dims = c.input_ints(0); dims && dims->size() != 4) {
    c.fail(cat("orig_input_shape must be 1-dimensional and 4 elements, but has ", dims->size()));
  }
  const PartialShape out = c.input_as_shape(0);
  c.set_output(0, out.has_rank() ? out : PartialShape::unknown_of_rank(4));
}

// ---- Gradients ----

AttrMap window_attrs(const GradientContext& g, std::initializer_list<const char*> names) {
  AttrMap attrs;
  for (const char* name : names) {
    if (g.op().find_attr(name)) attrs.set(name, *g.find_attr(name));
  }
  return attrs;
}

void max_pool_gradient(GradientContext& g) {
  g.set(0,
        op1("MaxPoolGrad", {g.input(0), g.output(), g.grad()},
            window_attrs(g, {"ksize", "strides", "padding", "explicit_paddings", "data_format"})));
}

void max_pool_v2_gradient(GradientContext& g) {
  g.set(0, op1("MaxPoolGradV2", {g.input(0), g.output(), g.grad(), g.input(1), g.input(2)},
               window_attrs(g, {"padding", "data_format"})));
}

// Which element of a window is the largest does not change with small changes of the values: only
// the gradient itself has a derivative.
void zero_towards_values(GradientContext& g) {
  if (g.needs(0)) g.set(0, op1("ZerosLike", {g.input(0)}));
  if (g.needs(1)) g.set(1, op1("ZerosLike", {g.input(1)}));
}

void max_pool_grad_gradient(GradientContext& g) {
  zero_towards_values(g);
  if (!g.needs(2)) return;
  if (g.attr<std::string>("padding") == "EXPLICIT") {
    throw UnimplementedError(
        "MaxPoolGrad has no gradient of its own where the padding is explicit: pad the images "
        "with td::pad and use \"VALID\".");
  }
  g.set(2, op1("MaxPoolGradGrad", {g.input(0), g.input(1), g.grad()},
               window_attrs(g, {"ksize", "strides", "padding", "data_format"})));
}

void max_pool_grad_grad_gradient(GradientContext& g) {
  zero_towards_values(g);
  if (!g.needs(2)) return;
  g.set(2, op1("MaxPoolGrad", {g.input(0), g.input(1), g.grad()},
               window_attrs(g, {"ksize", "strides", "padding", "data_format"})));
}

void gradient_v2(GradientContext& g, const char* op) {
  zero_towards_values(g);
  if (!g.needs(2)) return;
  g.set(2, op1(op, {g.input(0), g.input(1), g.grad(), g.input(3), g.input(4)},
               window_attrs(g, {"padding", "data_format"})));
}
void max_pool_grad_v2_gradient(GradientContext& g) { gradient_v2(g, "MaxPoolGradGradV2"); }
void max_pool_grad_grad_v2_gradient(GradientContext& g) { gradient_v2(g, "MaxPoolGradV2"); }

void avg_pool_gradient(GradientContext& g) {
  g.set(0, op1("AvgPoolGrad", {shape(g.input(0)), g.grad()},
               window_attrs(g, {"ksize", "strides", "padding", "data_format"})));
}

void avg_pool_grad_gradient(GradientContext& g) {
  if (!g.needs(1)) return;
  g.set(1, op1("AvgPool", {g.grad()},
               window_attrs(g, {"ksize", "strides", "padding", "data_format"})));
}

// ---- Declarations ----

const OpRegistration kMaxPool{
    {.name = "MaxPool",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16} = "
              "float; ksize: list(int); strides: list(int); padding: {'SAME', 'VALID', "
              "'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW', "
              "'NCHW_VECT_C'} = 'NHWC'",
     .shape = pool_shape,
     .gradient = max_pool_gradient,
     .flops = flops::pool,
     .doc = "The largest value of each window."}};

const OpRegistration kMaxPoolV2{
    {.name = "MaxPoolV2",
     .inputs = "input: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16} = "
              "float; padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = "
              "'NHWC'",
     .shape = pool_v2_shape,
     .gradient = max_pool_v2_gradient,
     .traits = {.host_inputs = 0b110},
     .doc = "MaxPool with sizes that are inputs."}};

const OpRegistration kMaxPoolGrad{
    {.name = "MaxPoolGrad",
     .inputs = "orig_input: T, orig_output: T, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int); strides: list(int); padding: {'SAME', 'VALID', 'EXPLICIT'}; "
              "explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: "
              "reals = float",
     .shape = image_shape,
     .gradient = max_pool_grad_gradient,
     .flops = flops::pool_grad<1>,
     .doc = "The gradient of MaxPool: each window's gradient goes to its first largest element."}};

const OpRegistration kMaxPoolGradV2{
    {.name = "MaxPoolGradV2",
     .inputs = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: reals = "
              "float",
     .shape = image_shape,
     .gradient = max_pool_grad_v2_gradient,
     .traits = {.host_inputs = 0b11000},
     .doc = "MaxPoolGrad with sizes that are inputs."}};

const OpRegistration kMaxPoolGradGrad{
    {.name = "MaxPoolGradGrad",
     .inputs = "orig_input: T, orig_output: T, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}; data_format: "
              "{'NHWC', 'NCHW'} = 'NHWC'; T: reals",
     .shape = windows_shape,
     .gradient = max_pool_grad_grad_gradient,
     .flops = flops::pool_grad<1>,
     .doc = "The gradient of MaxPoolGrad: for each window the value of `grad` where the window is "
            "largest."}};

const OpRegistration kMaxPoolGradGradV2{
    {.name = "MaxPoolGradGradV2",
     .inputs = "orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32",
     .outputs = "output: T",
     .attrs = "padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: reals",
     .shape = windows_shape,
     .gradient = max_pool_grad_grad_v2_gradient,
     .traits = {.host_inputs = 0b11000},
     .doc = "MaxPoolGradGrad with sizes that are inputs."}};

const OpRegistration kAvgPool{
    {.name = "AvgPool",
     .inputs = "value: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}; data_format: "
              "{'NHWC', 'NCHW'} = 'NHWC'; T: floats",
     .shape = pool_shape,
     .gradient = avg_pool_gradient,
     .flops = flops::pool,
     .doc = "The mean of each window, without the padding."}};

const OpRegistration kAvgPoolGrad{
    {.name = "AvgPoolGrad",
     .inputs = "orig_input_shape: int32, grad: T",
     .outputs = "output: T",
     .attrs = "ksize: list(int); strides: list(int); padding: {'SAME', 'VALID'}; data_format: "
              "{'NHWC', 'NCHW'} = 'NHWC'; T: floats",
     .shape = avg_pool_grad_shape,
     .gradient = avg_pool_grad_gradient,
     .traits = {.host_inputs = 0b1},
     .flops = flops::pool_grad<1>,
     .doc = "The gradient of AvgPool: each window's gradient in equal shares."}};

AttrMap pool_attrs(nn::Size2D ksize, nn::Size2D strides, const nn::Padding& padding,
                   std::string_view data_format) {
  const bool nchw = data_format == "NCHW";
  const auto four = [nchw](nn::Size2D size) {
    return nchw ? Ints{1, 1, size.height, size.width} : Ints{1, size.height, size.width, 1};
  };
  AttrMap attrs{{"ksize", four(ksize)},
                {"strides", four(strides)},
                {"padding", padding.kind},
                {"data_format", data_format}};
  if (!padding.counts.empty()) {
    Ints all(8, 0);
    std::copy(padding.counts.begin(), padding.counts.end(), all.begin() + (nchw ? 4 : 2));
    attrs.set("explicit_paddings", std::move(all));
  }
  return attrs;
}

}  // namespace

namespace nn {

Tensor max_pool2d(Tensor input, Size2D ksize, Size2D strides, const Padding& padding,
                  StringView data_format) {
  return call1(kMaxPool, {std::move(input)}, pool_attrs(ksize, strides, padding, data_format));
}

Tensor avg_pool2d(Tensor input, Size2D ksize, Size2D strides, const Padding& padding,
                  StringView data_format) {
  if (!padding.counts.empty()) {
    throw InvalidArgumentError(
        "td::nn::avg_pool2d: the padding must be \"SAME\" or \"VALID\"; pad the images with "
        "td::pad "
        "first.");
  }
  return call1(kAvgPool, {std::move(input)}, pool_attrs(ksize, strides, padding, data_format));
}

}  // namespace nn
}  // namespace tandem
