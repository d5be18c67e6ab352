// Running sums and products: Cumsum, Cumprod.

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/reduction_ops.h"
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

CumulativeOptions options_of(const GradientContext& g) {
  return {.exclusive = g.attr<bool>("exclusive"), .reverse = g.attr<bool>("reverse")};
}

// What each element has added to is summed from the other end.
Tensor sum_backwards(const Tensor& x, GradientContext& g) {
  CumulativeOptions options = options_of(g);
  options.reverse = !options.reverse;
  return internal::op1("Cumsum", {x, g.input(1)},
                       {{"exclusive", options.exclusive}, {"reverse", options.reverse}});
}

void cumsum_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, sum_backwards(g.grad(), g));
}

// As TensorFlow's, 0 where an element is 0.
void cumprod_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  g.set(0, math::divide_no_nan(sum_backwards(multiply(g.output(), g.grad()), g), g.input(0)));
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

}  // namespace

Tensor cumsum(Tensor x, std::int64_t axis, CumulativeOptions options) {
  return scan(kCumsum, std::move(x), internal::index_scalar(axis), options);
}

Tensor math::cumprod(Tensor x, std::int64_t axis, CumulativeOptions options) {
  return scan(kCumprod, std::move(x), internal::index_scalar(axis), options);
}

}  // namespace tandem
