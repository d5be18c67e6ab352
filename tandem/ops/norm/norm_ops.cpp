// Functions of td::nn that normalise, made of others; and LRN.

#include "tandem/ops/norm_ops.h"

#include <utility>
#include <vector>

#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void lrn_shape(InferenceContext& c) {
  PartialShape out = c.input(0);
  for (int i = 0; i < c.num_inputs(); ++i) {
    c.require_rank(i, 4);
    out = out.merge(c.input(i));
  }
  c.set_output(0, out.has_rank() ? out : PartialShape::unknown_of_rank(4));
}

void lrn_gradient(GradientContext& g) {
  g.set(0, internal::op1("LRNGrad", {g.grad(), g.input(0), g.output()},
                         {{"depth_radius", g.attr<std::int64_t>("depth_radius")},
                          {"bias", g.attr<float>("bias")},
                          {"alpha", g.attr<float>("alpha")},
                          {"beta", g.attr<float>("beta")}}));
}

const OpRegistration kLrn{
    {.name = "LRN",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: "
              "{half, bfloat16, float} = float",
     .shape = lrn_shape,
     .gradient = lrn_gradient,
     .flops = flops::per_input<20>,
     .doc = "x / (bias + alpha * sum of squares of neighbouring channels) ^ beta, NHWC."}};

const OpRegistration kLrnGrad{
    {.name = "LRNGrad",
     .inputs = "input_grads: T, input_image: T, output_image: T",
     .outputs = "output: T",
     .attrs = "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; T: "
              "{half, bfloat16, float} = float",
     .shape = lrn_shape,
     .flops = flops::per_input<30>,
     .doc = "The gradient of LRN."}};

bool is_short(DType dtype) { return dtype == DType::kHalf || dtype == DType::kBFloat16; }

}  // namespace

namespace nn {

Tensor batch_normalization(const Tensor& x, const Tensor& mean, const Tensor& variance,
                           const Tensor& offset, const Tensor& scale, double variance_epsilon) {
  Tensor factor = math::rsqrt(variance + variance_epsilon);
  if (scale.defined()) factor = std::move(factor) * scale;
  const Tensor shift = offset.defined() ? offset - mean * factor : -mean * factor;
  return x * cast(factor, x.dtype()) + cast(shift, x.dtype());
}

Moments moments(const Tensor& x, const std::vector<std::int64_t>& axes, bool keepdims) {
  const bool narrow = is_short(x.dtype());
  const Tensor values = narrow ? cast(x, float32) : x;
  const Axes over(axes);
  Tensor mean = reduce_mean(values, over, true);
  // The variance is least at the mean, so nothing of its gradient flows through the mean.
  Tensor variance = reduce_mean(math::squared_difference(values, stop_gradient(mean)), over, true);
  if (!keepdims && !axes.empty()) {
    mean = squeeze(std::move(mean), axes);
    variance = squeeze(std::move(variance), axes);
  }
  if (!narrow) return {std::move(mean), std::move(variance)};
  return {cast(std::move(mean), x.dtype()), cast(std::move(variance), x.dtype())};
}

Tensor l2_normalize(const Tensor& x, const std::vector<std::int64_t>& axes, double epsilon) {
  const Tensor sum = reduce_sum(square(x), axes.empty() ? Axes() : Axes(axes), true);
  return x * math::rsqrt(maximum(sum, epsilon));
}

Tensor local_response_normalization(Tensor input,
                                    const LocalResponseNormalizationOptions& options) {
  return call1(kLrn, {std::move(input)},
               {{"depth_radius", options.depth_radius},
                {"bias", options.bias},
                {"alpha", options.alpha},
                {"beta", options.beta}});
}

}  // namespace nn
}  // namespace tandem
