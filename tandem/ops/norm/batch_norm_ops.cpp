// FusedBatchNorm and its gradient; td::nn::fused_batch_norm.

#include <algorithm>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/fuse_product.h"
#include "tandem/ops/norm_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

// Reads rank and place of the channels off the data format.
struct Format {
  int rank;
  int channel_axis;
};
Format format_of(const InferenceContext& c) {
  const std::string& format = c.attr<std::string>("data_format");
  return {static_cast<int>(format.size()),
          format[1] == 'C' ? 1 : static_cast<int>(format.size()) - 1};
}

// The image's shape with the number of channels that inputs [first, first + count), vectors of one
// value a channel, agree on.
PartialShape image_with_channels(const InferenceContext& c, int image, int first, int count) {
  const auto [rank, axis] = format_of(c);
  c.require_rank(image, rank);
  PartialShape shape =
      c.input(image).has_rank() ? c.input(image) : PartialShape::unknown_of_rank(rank);
  std::int64_t channels = shape.dim(axis);
  for (int i = first; i < first + count; ++i) {
    c.require_rank(i, 1);
    if (c.input(i).has_rank()) {
      channels = c.merge_dim(channels, c.input(i).dim(0), "numbers of channels");
    }
  }
  shape.set_dim(axis, channels);
  return shape;
}

void batch_norm_shape(InferenceContext& c) {
  // Training takes moments only for running averages; without them the two inputs may be empty.
  const bool needs_moments =
      !c.attr<bool>("is_training") || c.attr<float>("exponential_avg_factor") != 1;
  const PartialShape out = image_with_channels(c, 0, 1, needs_moments ? 4 : 2);
  const PartialShape channels({out.dim(format_of(c).channel_axis)});
  c.set_output(0, out);
  for (int i = 1; i < 5; ++i) c.set_output(i, channels);
  if (c.num_outputs() > 5) c.set_output(5, PartialShape::scalar());
}

void batch_norm_grad_shape(InferenceContext& c) {
  const PartialShape x = image_with_channels(c, 1, 2, 3);
  const PartialShape out = image_with_channels(c, 0, 2, 3).merge(x);
  const PartialShape channels({out.dim(format_of(c).channel_axis)});
  c.set_output(0, out);
  c.set_output(1, channels);
  c.set_output(2, channels);
  c.set_output(3, PartialShape({0}));
  c.set_output(4, PartialShape({0}));
}

void gradient(GradientContext& g, const char* op) {
  const bool training = g.attr<bool>("is_training");
  std::vector<Tensor> inputs{g.grad(0), g.input(0), g.input(1), training ? g.output(3) : g.input(3),
                             training ? g.output(4) : g.input(4)};
  if (g.num_outputs() > 5) inputs.push_back(g.output(5));
  const auto results = raw_op(op, inputs,
                              {{"epsilon", g.attr<float>("epsilon")},
                               {"data_format", g.attr<std::string>("data_format")},
                               {"is_training", training}});
  for (int i = 0; i < 3; ++i) {
    if (g.needs(i)) g.set(i, results[static_cast<std::size_t>(i)]);
  }
}
void gradient_v1(GradientContext& g) { gradient(g, "FusedBatchNormGrad"); }
void gradient_v2(GradientContext& g) { gradient(g, "FusedBatchNormGradV2"); }
void gradient_v3(GradientContext& g) { gradient(g, "FusedBatchNormGradV3"); }

// ---- Gradients of the gradient ----

// A call of FusedBatchNormGrad in float, and what is asked of its outputs.
struct SecondOrder {
  Tensor dy, x, scale;
  Tensor upstream, upstream_of_scale, upstream_of_offset;
  std::vector<std::int64_t> others;  // the axes but the channels'

  // Axes for values of the channels that `x` has last, or second.
  Tensor along_channels(Tensor vector) const {
    if (others.back() + 1 == static_cast<std::int64_t>(others.size())) return vector;
    std::vector<std::int64_t> sizes(others.size() + 1, 1);
    sizes[1] = -1;
    return reshape(std::move(vector), sizes);
  }
  Tensor mean(const Tensor& values) const { return reduce_mean(values, others, true); }
  Tensor sums(const Tensor& values) const { return reduce_sum(values, others); }
};
struct SecondOrderGradients {
  Tensor dy, x, scale;
};

// With n = (x - mean) r normalised and r = 1 / sqrt(variance + epsilon),
//   dx = scale r (dy - mean(dy) - n mean(dy n)), d scale = sum(dy n), d offset = sum(dy),
// where the moments are those of x, also where other ones were reserved.
SecondOrderGradients through_own_moments(const SecondOrder& c, float epsilon) {
  const Tensor offset = c.x - c.mean(c.x);
  const Tensor r = math::rsqrt(c.mean(square(offset)) + epsilon);
  const Tensor n = offset * r;
  const Tensor dy = c.dy - c.mean(c.dy);
  const Tensor up = c.upstream - c.mean(c.upstream);
  const Tensor dy_n = c.mean(dy * n), up_n = c.mean(up * n);
  const Tensor factor = c.along_channels(c.scale) * r;
  const Tensor of_scale = c.along_channels(c.upstream_of_scale);
  const Tensor curved = (c.mean(up * dy) - 3.0f * up_n * dy_n) * n + dy_n * up + up_n * dy;
  return {factor * (up - n * up_n) + of_scale * n + c.along_channels(c.upstream_of_offset),
          of_scale * r * (dy - n * dy_n) - factor * r * curved,
          c.sums(c.upstream * r * (dy - n * dy_n))};
}

// With given moments: dx = scale r dy, d scale = sum(dy (x - mean) r), d offset = sum(dy).
SecondOrderGradients through_given_moments(const SecondOrder& c, const Tensor& mean,
                                           const Tensor& variance, float epsilon) {
  const Tensor r = math::rsqrt(c.along_channels(variance) + epsilon);
  const Tensor of_scale = c.along_channels(c.upstream_of_scale) * r;
  return {c.along_channels(c.scale) * r * c.upstream + of_scale * (c.x - c.along_channels(mean)) +
              c.along_channels(c.upstream_of_offset),
          of_scale * c.dy, c.sums(c.upstream * r * c.dy)};
}

// Half and bfloat16 are taken in float, and go back at the end.
void second_gradient(GradientContext& g) {
  const auto& format = g.attr<std::string>("data_format");
  const auto in_float = [](const Tensor& x) { return cast(x, DType::kFloat); };
  SecondOrder c{in_float(g.input(0)),
                in_float(g.input(1)),
                g.input(2),
                in_float(g.grad(0)),
                g.grad(1),
                g.grad(2),
                {}};
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != 'C') c.others.push_back(static_cast<std::int64_t>(i));
  }
  const float epsilon = g.attr<float>("epsilon");
  const SecondOrderGradients made = g.attr<bool>("is_training")
                                        ? through_own_moments(c, epsilon)
                                        : through_given_moments(c, g.input(3), g.input(4), epsilon);
  if (g.needs(0)) g.set(0, cast(made.dy, g.input(0).dtype()));
  if (g.needs(1)) g.set(1, cast(made.x, g.input(1).dtype()));
  if (g.needs(2)) g.set(2, made.scale);
}

const OpRegistration kFusedBatchNorm{
    {.name = "FusedBatchNorm",
     .inputs = "x: T, scale: T, offset: T, mean: T, variance: T",
     .outputs = "y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T",
     .attrs = "T: {float}; epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; "
              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_shape,
     .gradient = gradient_v1,
     .fuse = internal::fuse_batch_norm,
     .flops = flops::per_input<8>,
     .doc = "FusedBatchNormV3 for floats alone."}};

const OpRegistration kFusedBatchNormV2{
    {.name = "FusedBatchNormV2",
     .inputs = "x: T, scale: U, offset: U, mean: U, variance: U",
     .outputs = "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U",
     .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; "
              "exponential_avg_factor: float = 1.0; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
              "is_training: bool = true",
     .shape = batch_norm_shape,
     .gradient = gradient_v2,
     .fuse = internal::fuse_batch_norm,
     .flops = flops::per_input<8>,
     .doc = "FusedBatchNormV3 without its last output."}};

const OpRegistration kFusedBatchNormV3{
    {.name = "FusedBatchNormV3",
     .inputs = "x: T, scale: U, offset: U, mean: U, variance: U",
     .outputs = "y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, "
                "reserve_space_3: U",
     .attrs = "T: {half, bfloat16, float}; U: {bfloat16, float}; epsilon: float = 0.0001; "
              "exponential_avg_factor: float = 1.0; data_format: {'NHWC', 'NCHW', 'NDHWC', "
              "'NCDHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_shape,
     .gradient = gradient_v3,
     .fuse = internal::fuse_batch_norm,
     .flops = flops::per_input<8>,
     .doc =
         "Each channel normalized to mean 0 and variance 1 (by the batch's moments when training, "
         "else by those given), then scaled and shifted. The reserved outputs are the batch's "
         "mean and variance, for the gradient."}};

const OpRegistration kFusedBatchNormGrad{
    {.name = "FusedBatchNormGrad",
     .inputs = "y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T",
     .outputs = "x_backprop: T, scale_backprop: T, offset_backprop: T, reserve_space_3: T, "
                "reserve_space_4: T",
     .attrs = "T: {float}; epsilon: float = 0.0001; data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
              "is_training: bool = true",
     .shape = batch_norm_grad_shape,
     .gradient = second_gradient,
     .flops = flops::per_input<12>,
     .doc = "FusedBatchNormGradV3 for floats alone."}};

const OpRegistration kFusedBatchNormGradV2{
    {.name = "FusedBatchNormGradV2",
     .inputs = "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U",
     .outputs = "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_3: U, "
                "reserve_space_4: U",
     .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; data_format: "
              "{'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_grad_shape,
     .gradient = second_gradient,
     .flops = flops::per_input<12>,
     .doc = "FusedBatchNormGradV3 without its last input."}};

const OpRegistration kFusedBatchNormGradV3{
    {.name = "FusedBatchNormGradV3",
     .inputs = "y_backprop: T, x: T, scale: float, reserve_space_1: U, reserve_space_2: U, "
               "reserve_space_3: U",
     .outputs = "x_backprop: T, scale_backprop: U, offset_backprop: U, reserve_space_4: U, "
                "reserve_space_5: U",
     .attrs = "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; data_format: "
              "{'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'; is_training: bool = true",
     .shape = batch_norm_grad_shape,
     .gradient = second_gradient,
     .flops = flops::per_input<12>,
     .doc = "The gradients of FusedBatchNorm towards x, scale and offset, from the mean and "
            "variance that it used."}};

}  // namespace

namespace nn {

FusedBatchNormResult fused_batch_norm(Tensor x, Tensor scale, Tensor offset,
                                      const FusedBatchNormOptions& options) {
  const bool needs_moments = !options.is_training || options.exponential_avg_factor != 1.0f;
  if (needs_moments && !(options.mean.defined() && options.variance.defined())) {
    throw InvalidArgumentError(
        "td::nn::fused_batch_norm: `mean` and `variance` must both be given when is_training is "
        "false or exponential_avg_factor is not 1.");
  }
  const auto or_none = [&](const Tensor& moments) {
    return moments.defined() ? moments
                             : constant(Tensor::from(std::vector<float>{}), scale.dtype());
  };
  // What cuDNN takes at least; smaller ones are raised everywhere, so that results agree.
  constexpr float kMinEpsilon = 1.001e-5f;
  const Tensor mean = or_none(options.mean);
  const Tensor variance = or_none(options.variance);
  const auto results =
      call(kFusedBatchNormV3, {std::move(x), std::move(scale), std::move(offset), mean, variance},
           {{"epsilon", std::max(options.epsilon, kMinEpsilon)},
            {"exponential_avg_factor", options.exponential_avg_factor},
            {"data_format", options.data_format},
            {"is_training", options.is_training}});
  return {results[0], results[1], results[2]};
}

}  // namespace nn
}  // namespace tandem
