#include "tandem/ops/clip_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/broadcast_gradient.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/loss_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

// Elements within the bounds pass the gradient on; of the others each gives it to its bound.
void clip_by_value_grad(GradientContext& g) {
  const Tensor zero = internal::int_scalar(0, g.input(0).dtype());
  const Tensor below = less(g.input(0), g.input(1));
  const Tensor above = greater(g.input(0), g.input(2));
  if (g.needs(0)) g.set(0, where(logical_or(below, above), zero, g.grad()));
  if (g.needs(1)) g.set(1, sum_to_shape_of(where(below, g.grad(), zero), g.input(1)));
  if (g.needs(2)) g.set(2, sum_to_shape_of(where(above, g.grad(), zero), g.input(2)));
}

const OpRegistration kClipByValue{
    {.name = "ClipByValue",
     .inputs = "t: T, clip_value_min: T, clip_value_max: T",
     .outputs = "output: T",
     .attrs = "T: numbers",
     .shape = shapes::unchanged,
     .gradient = clip_by_value_grad,
     .traits = {.elementwise = true, .may_reuse = 0b1},
     .doc = "The values clipped to [clip_value_min, clip_value_max]; the bounds are "
            "scalars or of t's shape."}};

// The op takes bounds that are scalars or of x's shape.
bool op_takes(const Tensor& bound, const Tensor& x) {
  if (bound.rank() == 0) return true;
  const auto dims = internal::known_dims(bound);
  return dims && dims == internal::known_dims(x);
}

Tensor one(DType dtype) { return internal::int_scalar(1, dtype); }

}  // namespace

Tensor clip_by_value(Operand x, Operand low, Operand high) {
  const DType dtype = !x.is_number() ? x.dtype() : !low.is_number() ? low.dtype() : high.dtype();
  Tensor value = std::move(x).take_as(dtype);
  Tensor least = std::move(low).take_as(dtype);
  Tensor most = std::move(high).take_as(dtype);
  if (op_takes(least, value) && op_takes(most, value)) {
    return call1(kClipByValue, {std::move(value), std::move(least), std::move(most)});
  }
  return maximum(minimum(std::move(value), std::move(most)), std::move(least));
}

Tensor clip_by_norm(Tensor x, Operand clip_norm, Axes axes) {
  const Tensor limit = std::move(clip_norm).take_as(x.dtype());
  const Tensor squares = reduce_sum(multiply(x, x), std::move(axes), true);
  // The gradient of a root at 0 is not finite, so it is taken of something else there.
  const Tensor is_positive = greater(squares, 0);
  const Tensor root = sqrt(where(is_positive, squares, one(x.dtype())));
  const Tensor norm = where(is_positive, root, squares);
  return divide(multiply(x, limit), maximum(norm, limit));
}

Tensor linalg::global_norm(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> halves;  // of the squared norms
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    const Tensor half = nn::l2_loss(t);
    halves.push_back(halves.empty() ? half : cast_like(half, halves[0]));
  }
  if (halves.empty()) throw InvalidArgumentError("global_norm needs at least one tensor.");
  return sqrt(multiply(add_n(halves), 2));
}

std::pair<std::vector<Tensor>, Tensor> clip_by_global_norm(const std::vector<Tensor>& tensors,
                                                           Operand clip_norm, Tensor use_norm) {
  Tensor norm = use_norm.defined() ? std::move(use_norm) : global_norm(tensors);
  const Tensor limit = std::move(clip_norm).take_as(norm.dtype());
  const Tensor unit = one(norm.dtype());
  const Tensor factor = multiply(limit, minimum(divide(unit, norm), divide(unit, limit)));
  const Tensor scale = add(factor, subtract(norm, norm));  // NaN if the norm is not finite
  std::vector<Tensor> clipped;
  clipped.reserve(tensors.size());
  for (const Tensor& t : tensors)
    clipped.push_back(t.defined() ? multiply(t, cast_like(scale, t)) : Tensor());
  return {std::move(clipped), std::move(norm)};
}

}  // namespace tandem
