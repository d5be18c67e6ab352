#include "tandem/ops/reduction_ops.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/rewrite.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/internal/fuse_moments.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/reduced_shape.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::op1;

void reduction_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  const bool keep_dims = c.attr<bool>("keep_dims");
  if (c.input(1).has_rank() && c.input(1).rank() > 1) {
    c.fail(cat("reduction_indices must be a scalar or a vector, not of shape ", c.input(1), "."));
  }
  const auto axes = c.input_ints(1);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (!axes) {
    return c.set_output(
        0, keep_dims ? PartialShape::unknown_of_rank(in.rank()) : PartialShape::unknown());
  }
  std::vector<bool> reduced(static_cast<std::size_t>(in.rank()), false);
  for (std::int64_t axis : *axes) {
    if (axis < -in.rank() || axis >= in.rank()) {
      c.fail(
          cat("Invalid reduction dimension ", axis, " for input with ", in.rank(), " dimensions."));
    }
    const auto i = static_cast<std::size_t>(axis < 0 ? axis + in.rank() : axis);
    if (reduced[i])
      c.fail(cat("Invalid reduction arguments: Axes contains duplicate dimension: ", i));
    reduced[i] = true;
  }
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i])
      dims.push_back(in.dims()[i]);
    else if (keep_dims)
      dims.push_back(1);
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

// The output, or its gradient, with the reduced axes as axes of size 1, so that it broadcasts to
// the input.
Tensor with_reduced_axes(GradientContext& g, Tensor value) {
  if (g.attr<bool>("keep_dims")) return value;
  return internal::reshape_as_reduced(std::move(value), g.input(0), g.input(1));
}

void sum_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, internal::broadcast_like(with_reduced_axes(g, g.grad()), g.input(0)));
}

void mean_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor count = internal::reduced_count(g.input(0), g.output(), g.grad().dtype());
  g.set(0, internal::broadcast_like(with_reduced_axes(g, divide(g.grad(), count)), g.input(0)));
}

// The gradient is shared by all elements that are equal to the result.
void extreme_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor best = with_reduced_axes(g, g.output());
  const Tensor grad = with_reduced_axes(g, g.grad());
  const Tensor is_best = cast(equal(g.input(0), best), grad.dtype());
  const Tensor number = op1("Sum", {is_best, g.input(1)}, {{"keep_dims", true}});
  g.set(0, multiply(divide(is_best, number), grad));
}

// For each element the product of all others: of those before it times those after it.
void prod_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor grad = with_reduced_axes(g, g.grad());
  g.set(0, multiply(grad, internal::product_of_others(g.input(0), g.input(1))));
}

void euclidean_norm_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor norm = with_reduced_axes(g, g.output());
  const Tensor grad = with_reduced_axes(g, g.grad());
  g.set(0, divide(g.input(0), divide(norm, grad)));
}

// Over no axes a value stays as it is. Gradients of additions whose operands turn out to have one
// shape are such sums.
bool drop_where_nothing_is_reduced(RewriteContext& r) {
  const Array* axes = r.constant(1);
  return axes && axes->num_elements() == 0 && r.may_drop(1) && r.replace_with(r.node().inputs()[0]);
}

// The root of a square is no identity, and most are not fused.
constexpr RewriteFn kKeep = nullptr;

#define TANDEM_REDUCTION(NAME, TYPES, GRADIENT, JOINS, REWRITE, FUSE, DOC)                  \
  const OpRegistration k##NAME {                                                            \
    {                                                                                       \
      .name = #NAME, .inputs = "input: T, reduction_indices: Tidx", .outputs = "output: T", \
      .attrs = "keep_dims: bool = false; T: " TYPES "; Tidx: index = int32",                \
      .shape = reduction_shape, .gradient = GRADIENT,                                       \
      .traits = {.host_inputs = 0b10, .joins = JOINS}, .rewrite = REWRITE, .fuse = FUSE,    \
      .doc = DOC                                                                            \
    }                                                                                       \
  }
TANDEM_REDUCTION(Sum, "numbers", sum_grad, ReductionKind::kSum, drop_where_nothing_is_reduced,
                 kKeep, "The sum over the axes given.");
TANDEM_REDUCTION(Mean, "numbers", mean_grad, ReductionKind::kMean, drop_where_nothing_is_reduced,
                 internal::fuse_moments, "The mean over the axes given.");
TANDEM_REDUCTION(Prod, "numbers", prod_grad, ReductionKind::kNothing, drop_where_nothing_is_reduced,
                 kKeep, "The product over the axes given.");
TANDEM_REDUCTION(Max, "reals", extreme_grad, ReductionKind::kNothing, drop_where_nothing_is_reduced,
                 kKeep, "The largest value over the axes given.");
TANDEM_REDUCTION(Min, "reals", extreme_grad, ReductionKind::kNothing, drop_where_nothing_is_reduced,
                 kKeep, "The smallest value over the axes given.");
TANDEM_REDUCTION(EuclideanNorm, "numbers", euclidean_norm_grad, ReductionKind::kNothing, kKeep,
                 kKeep, "The root of the sum of the squares over the axes given.");
#undef TANDEM_REDUCTION

const OpRegistration kAll{{.name = "All",
                           .inputs = "input: bool, reduction_indices: Tidx",
                           .outputs = "output: bool",
                           .attrs = "keep_dims: bool = false; Tidx: index = int32",
                           .shape = reduction_shape,
                           .gradient = not_differentiable,
                           .traits = {.host_inputs = 0b10},
                           .rewrite = drop_where_nothing_is_reduced,
                           .doc = "Whether all values over the axes given are true."}};

const OpRegistration kAny{{.name = "Any",
                           .inputs = "input: bool, reduction_indices: Tidx",
                           .outputs = "output: bool",
                           .attrs = "keep_dims: bool = false; Tidx: index = int32",
                           .shape = reduction_shape,
                           .gradient = not_differentiable,
                           .traits = {.host_inputs = 0b10},
                           .rewrite = drop_where_nothing_is_reduced,
                           .doc = "Whether some value over the axes given is true."}};

Tensor reduce(const OpRegistration& op, Tensor x, const Axes& axis, bool keepdims) {
  Tensor axes = axis.to_tensor(x);
  if (!keepdims) return call1(op, {std::move(x), std::move(axes)});
  return call1(op, {std::move(x), std::move(axes)}, {{"keep_dims", true}});
}

}  // namespace

Tensor reduce_sum(Tensor x, Axes axis, bool keepdims) {
  return reduce(kSum, std::move(x), axis, keepdims);
}
Tensor reduce_mean(Tensor x, Axes axis, bool keepdims) {
  return reduce(kMean, std::move(x), axis, keepdims);
}
Tensor reduce_prod(Tensor x, Axes axis, bool keepdims) {
  return reduce(kProd, std::move(x), axis, keepdims);
}
Tensor reduce_max(Tensor x, Axes axis, bool keepdims) {
  return reduce(kMax, std::move(x), axis, keepdims);
}
Tensor reduce_min(Tensor x, Axes axis, bool keepdims) {
  return reduce(kMin, std::move(x), axis, keepdims);
}
Tensor reduce_all(Tensor x, Axes axis, bool keepdims) {
  return reduce(kAll, std::move(x), axis, keepdims);
}
Tensor reduce_any(Tensor x, Axes axis, bool keepdims) {
  return reduce(kAny, std::move(x), axis, keepdims);
}

// The largest value is taken out first; it is a constant to gradients, and 0 where it is not
// finite.
Tensor reduce_logsumexp(Tensor x, Axes axis, bool keepdims) {
  const Tensor axes = axis.to_tensor(x);
  const Tensor largest = reduce_max(x, axes, true);
  const Tensor offset =
      stop_gradient(where(math::is_finite(largest), largest, internal::int_scalar(0, x.dtype())));
  const Tensor sum = math::log(reduce_sum(exp(subtract(x, offset)), axes, true));
  const Tensor result = add(sum, offset);
  return keepdims ? result : reduce_sum(result, axes);  // the axes have size 1
}

namespace math {

Tensor reduce_variance(Tensor x, Axes axis, bool keepdims) {
  if (!is_floating(x.dtype()) && !is_complex(x.dtype())) {
    throw InvalidArgumentError(
        cat("reduce_variance needs floating or complex values, not ", x.dtype(), "."));
  }
  const Tensor axes = axis.to_tensor(x);
  const Tensor distance = subtract(x, reduce_mean(x, axes, true));
  const Tensor squares = is_complex(x.dtype())
                             ? math::real(multiply(distance, math::conj(distance)))
                             : square(distance);
  return reduce_mean(squares, axes, keepdims);
}

Tensor reduce_std(Tensor x, Axes axis, bool keepdims) {
  return sqrt(reduce_variance(std::move(x), std::move(axis), keepdims));
}

Tensor reduce_euclidean_norm(Tensor x, Axes axis, bool keepdims) {
  return reduce(kEuclideanNorm, std::move(x), axis, keepdims);
}

Tensor count_nonzero(Tensor x, Axes axis, bool keepdims, DType dtype) {
  const Tensor differs =
      x.dtype() == boolean ? x : not_equal(x, internal::int_scalar(0, x.dtype()));
  return reduce_sum(cast(differs, dtype), std::move(axis), keepdims);
}

}  // namespace math
}  // namespace tandem
