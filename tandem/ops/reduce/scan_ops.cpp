// Running sums and products: Cumsum, Cumprod, CumulativeLogsumexp.

#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void scan_shape(InferenceContext& c) {
  c.require_rank(1, 0);
  const PartialShape& in = c.input(0);
  const auto axis = c.input_ints(1);
  if (in.has_rank() && axis && (axis->front() < -in.rank() || axis->front() >= in.rank())) {
    c.fail(cat("the axis must be in the range [", -in.rank(), ", ", in.rank(), "), but is ",
               axis->front(), "."));
  }
  c.set_output(0, in);
}

Tensor scan(const OpRegistration& op, Tensor x, Tensor axis, CumulativeOptions options) {
  if (!options.exclusive && !options.reverse) return call1(op, {std::move(x), std::move(axis)});
  return call1(op, {std::move(x), std::move(axis)},
               {{"exclusive", options.exclusive}, {"reverse", options.reverse}});
}

AttrMap backwards(const GradientContext& g) {
  return {{"exclusive", g.attr<bool>("exclusive")}, {"reverse", !g.attr<bool>("reverse")}};
}

// What each element has added to is summed from the other end.
Tensor sum_backwards(const Tensor& x, const GradientContext& g) {
  return internal::op1("Cumsum", {x, g.input(1)}, backwards(g));
}

void cumsum_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, sum_backwards(g.grad(), g));
}

// Like TensorFlow's, 0 where an element is 0.
void cumprod_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  g.set(0, math::divide_no_nan(sum_backwards(multiply(g.output(), g.grad()), g), g.input(0)));
}

Tensor lowest_value(DType t) {
  switch (t) {
    case DType::kHalf: return scalar(Half(-65504.0f));
    case DType::kBFloat16: return scalar(std::bit_cast<BFloat16>(std::uint16_t{0xff7f}));
    case DType::kDouble: return scalar(std::numeric_limits<double>::lowest());
    default: return scalar(std::numeric_limits<float>::lowest());
  }
}

// The sums are of gradients of both signs, each taken as a logarithm.
void cumulative_logsumexp_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor grad = g.grad();
  const auto part = [&](const Tensor& magnitude) {
    const Tensor logs =
        where(greater(magnitude, 0), math::log(magnitude), lowest_value(grad.dtype()));
    const Tensor sums = internal::op1("CumulativeLogsumexp",
                                      {subtract(logs, g.output()), g.input(1)}, backwards(g));
    return exp(add(sums, g.input(0)));
  };
  g.set(0, subtract(part(grad), part(negative(grad))));
}

const OpRegistration kCumsum{
    {.name = "Cumsum",
     .inputs = "x: T, axis: Tidx",
     .outputs = "out: T",
     .attrs = "exclusive: bool = false; reverse: bool = false; T: numbers; Tidx: index = int32",
     .shape = scan_shape,
     .gradient = cumsum_grad,
     .traits = {.may_reuse = 0b1, .host_inputs = 0b10},
     .doc = "Running sums along an axis; exclusive ones leave the element itself out, "
            "reverse ones begin at the end."}};

const OpRegistration kCumprod{
    {.name = "Cumprod",
     .inputs = "x: T, axis: Tidx",
     .outputs = "out: T",
     .attrs = "exclusive: bool = false; reverse: bool = false; T: numbers; Tidx: index = int32",
     .shape = scan_shape,
     .gradient = cumprod_grad,
     .traits = {.may_reuse = 0b1, .host_inputs = 0b10},
     .doc = "Running products along an axis; exclusive ones leave the element itself out, "
            "reverse ones begin at the end."}};

const OpRegistration kCumulativeLogsumexp{
    {.name = "CumulativeLogsumexp",
     .inputs = "x: T, axis: Tidx",
     .outputs = "out: T",
     .attrs = "exclusive: bool = false; reverse: bool = false; T: floats; Tidx: index = int32",
     .shape = scan_shape,
     .gradient = cumulative_logsumexp_grad,
     .traits = {.may_reuse = 0b1, .host_inputs = 0b10},
     .doc = "log(sum(exp(x))) up to each element along an axis; -inf of none."}};

}  // namespace

Tensor cumsum(Tensor x, std::int64_t axis, CumulativeOptions options) {
  return scan(kCumsum, std::move(x), internal::index_scalar(axis), options);
}

Tensor math::cumprod(Tensor x, std::int64_t axis, CumulativeOptions options) {
  return scan(kCumprod, std::move(x), internal::index_scalar(axis), options);
}

Tensor math::cumulative_logsumexp(Tensor x, std::int64_t axis, CumulativeOptions options) {
  return scan(kCumulativeLogsumexp, std::move(x), internal::index_scalar(axis), options);
}

}  // namespace tandem
