#include "tandem/ops/segment_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

void unsorted_shape(InferenceContext& c) {
  const PartialShape& data = c.input(0);
  const PartialShape& ids = c.input(1);
  c.require_rank(2, 0);
  const auto n = internal::input_int(c, 2);
  if (n && *n < 0) c.fail(cat("Input num_segments == ", *n, " must not be negative."));
  if (!data.has_rank() || !ids.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (ids.rank() > data.rank()) {
    c.fail(cat("data.shape = ", data, " does not start with segment_ids.shape = ", ids));
  }
  std::vector<std::int64_t> dims{n.value_or(kUnknown)};
  for (int i = 0; i < data.rank(); ++i) {
    if (i < ids.rank()) {
      c.merge_dim(data.dim(i), ids.dim(i), "beginning of data's shape and segment_ids' shape");
    } else {
      dims.push_back(data.dim(i));
    }
  }
  c.set_output(0, PartialShape(std::move(dims)));
}

void sorted_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank(1, 1);
  PartialShape out = c.input(0);
  if (out.has_rank()) {
    c.merge_dim(out.dim(0), c.input(1).dim(0), "rows of data and segment_ids");
    out.set_dim(0, kUnknown);
  }
  c.set_output(0, std::move(out));
}

Tensor zero(DType dtype) { return internal::int_scalar(0, dtype); }

// A condition on ids with axes of size 1 added, so that it broadcasts over `like`.
Tensor with_rank_of(const Tensor& condition, const Tensor& like) {
  const int extra = like.rank() >= 0 && condition.rank() >= 0 ? like.rank() - condition.rank() : -1;
  if (extra == 0) return condition;
  if (extra > 0) {
    Tensor wide = condition;
    for (int i = 0; i < extra; ++i) wide = expand_dims(wide, -1);
    return wide;
  }
  const Tensor ones_behind = fill(reshape(rank(like) - rank(condition), {1}), Tensor(1));
  return reshape(condition, concat({shape(condition), ones_behind}, 0));
}

struct Gathered {
  Tensor values;       // rows by ids; zeros where the id is negative
  Tensor is_positive;  // of the values' rank
};

Tensor clipped(const Tensor& ids) { return maximum(ids, zero(ids.dtype())); }

Gathered gather_drop_negatives(const Tensor& params, const Tensor& ids) {
  const Tensor rows = gather(params, clipped(ids), 0);
  const Tensor positive = with_rank_of(greater_equal(ids, zero(ids.dtype())), rows);
  return {where(positive, rows, zeros_like(rows)), positive};
}

void unsorted_sum_grad(GradientContext& g) {
  g.set(0, gather_drop_negatives(g.grad(), g.input(1)).values);
}

void unsorted_extreme_grad(GradientContext& g) {
  const Tensor& data = g.input(0);
  const Tensor& ids = g.input(1);
  const Gathered best = gather_drop_negatives(g.output(), ids);
  const Tensor selected = logical_and(equal(data, best.values), best.is_positive);
  const Tensor count =
      math::unsorted_segment_sum(cast(selected, g.grad().dtype()), ids, g.input(2));
  const Tensor share = g.grad() / count;
  const Tensor shares = gather_drop_negatives(share, ids).values;
  g.set(0, where(selected, shares, zeros_like(shares)));
}

// The product of the others: the whole divided by the element, or, where that is the only zero, the
// product of the rest; with two zeros nothing flows.
template <class Sum, class Prod, class Rows>
Tensor product_grad(GradientContext& g, Sum sum, Prod prod, Rows rows) {
  const Tensor& data = g.input(0);
  const Tensor is_zero = equal(data, zero(data.dtype()));
  const Tensor zeros_seen = sum(cast(is_zero, int32));
  const Tensor one = internal::int_scalar(1, data.dtype());
  const Tensor many = greater(zeros_seen, Tensor(1));
  const Tensor grad = where(many, zeros_like(g.grad()), g.grad());
  const Tensor rest = prod(where(is_zero, one, data));
  const Tensor whole = rows(g.output()) / data;
  return rows(grad) * where(is_zero, rows(rest), whole);
}

void unsorted_prod_grad(GradientContext& g) {
  const Tensor& ids = g.input(1);
  const Tensor& n = g.input(2);
  const Tensor result = product_grad(
      g, [&](const Tensor& t) { return math::unsorted_segment_sum(t, ids, n); },
      [&](const Tensor& t) { return math::unsorted_segment_prod(t, ids, n); },
      [&](const Tensor& t) { return gather(t, clipped(ids), 0); });
  const Tensor positive = with_rank_of(greater_equal(ids, zero(ids.dtype())), result);
  g.set(0, where(positive, result, zeros_like(result)));
}

void sum_grad(GradientContext& g) { g.set(0, gather(g.grad(), g.input(1), 0)); }

void mean_grad(GradientContext& g) {
  const Tensor& ids = g.input(1);
  const Tensor count = math::segment_sum(ones_like(cast(ids, g.grad().dtype())), ids);
  const Tensor share = g.grad() / with_rank_of(count, g.grad());
  g.set(0, gather(share, ids, 0));
}

void extreme_grad(GradientContext& g) {
  const Tensor& ids = g.input(1);
  const Tensor selected = equal(g.input(0), gather(g.output(), ids, 0));
  const Tensor count = math::segment_sum(cast(selected, g.grad().dtype()), ids);
  const Tensor shares = gather(g.grad() / count, ids, 0);
  g.set(0, where(selected, shares, zeros_like(shares)));
}

void prod_grad(GradientContext& g) {
  const Tensor& ids = g.input(1);
  g.set(0, product_grad(
               g, [&](const Tensor& t) { return math::segment_sum(t, ids); },
               [&](const Tensor& t) { return math::segment_prod(t, ids); },
               [&](const Tensor& t) { return gather(t, ids, 0); }));
}

constexpr const char* kUnsortedInputs =
    "data: T, segment_ids: Tindices, num_segments: Tnumsegments";

const OpRegistration kUnsortedSegmentSum{
    {.name = "UnsortedSegmentSum",
     .inputs = kUnsortedInputs,
     .outputs = "output: T",
     .attrs = "T: numbers; Tindices: {int16, int32, int64}; Tnumsegments: index = int32",
     .shape = unsorted_shape,
     .gradient = unsorted_sum_grad,
     .traits = {.host_inputs = 0b100},
     .doc = "The sum of data's rows for each id; rows of negative ids are dropped."}};

const OpRegistration kUnsortedSegmentProd{
    {.name = "UnsortedSegmentProd",
     .inputs = kUnsortedInputs,
     .outputs = "output: T",
     .attrs = "T: numbers; Tindices: index; Tnumsegments: index = int32",
     .shape = unsorted_shape,
     .gradient = unsorted_prod_grad,
     .traits = {.host_inputs = 0b100},
     .doc = "The product of data's rows for each id; rows of negative ids are dropped."}};

const OpRegistration kUnsortedSegmentMax{
    {.name = "UnsortedSegmentMax",
     .inputs = kUnsortedInputs,
     .outputs = "output: T",
     .attrs = "T: reals; Tindices: index; Tnumsegments: index = int32",
     .shape = unsorted_shape,
     .gradient = unsorted_extreme_grad,
     .traits = {.host_inputs = 0b100},
     .doc = "The largest of data's rows for each id; the lowest number where there is none."}};

const OpRegistration kUnsortedSegmentMin{
    {.name = "UnsortedSegmentMin",
     .inputs = kUnsortedInputs,
     .outputs = "output: T",
     .attrs = "T: reals; Tindices: index; Tnumsegments: index = int32",
     .shape = unsorted_shape,
     .gradient = unsorted_extreme_grad,
     .traits = {.host_inputs = 0b100},
     .doc = "The smallest of data's rows for each id; the highest number where there is none."}};

const OpRegistration kSegmentSum{
    {.name = "SegmentSum",
     .inputs = "data: T, segment_ids: Tindices",
     .outputs = "output: T",
     .attrs = "T: numbers; Tindices: index",
     .shape = sorted_shape,
     .gradient = sum_grad,
     .doc = "The sum of data's rows for each of ids that never fall."}};

const OpRegistration kSegmentMean{{.name = "SegmentMean",
                                   .inputs = "data: T, segment_ids: Tindices",
                                   .outputs = "output: T",
                                   .attrs = "T: numbers; Tindices: index",
                                   .shape = sorted_shape,
                                   .gradient = mean_grad,
                                   .doc = "The mean of data's rows for each of ids that never "
                                          "fall."}};

const OpRegistration kSegmentProd{{.name = "SegmentProd",
                                   .inputs = "data: T, segment_ids: Tindices",
                                   .outputs = "output: T",
                                   .attrs = "T: numbers; Tindices: index",
                                   .shape = sorted_shape,
                                   .gradient = prod_grad,
                                   .doc = "The product of data's rows for each of ids that never "
                                          "fall."}};

const OpRegistration kSegmentMax{{.name = "SegmentMax",
                                  .inputs = "data: T, segment_ids: Tindices",
                                  .outputs = "output: T",
                                  .attrs = "T: reals; Tindices: index",
                                  .shape = sorted_shape,
                                  .gradient = extreme_grad,
                                  .doc = "The largest of data's rows for each of ids that never "
                                         "fall."}};

const OpRegistration kSegmentMin{{.name = "SegmentMin",
                                  .inputs = "data: T, segment_ids: Tindices",
                                  .outputs = "output: T",
                                  .attrs = "T: reals; Tindices: index",
                                  .shape = sorted_shape,
                                  .gradient = extreme_grad,
                                  .doc = "The smallest of data's rows for each of ids that never "
                                         "fall."}};

Tensor unsorted(const OpRegistration& op, Tensor data, Tensor ids, Tensor n) {
  return call1(op, {std::move(data), std::move(ids), std::move(n)});
}

}  // namespace

namespace math {

Tensor unsorted_segment_sum(Tensor data, Tensor segment_ids, Tensor num_segments) {
  return unsorted(kUnsortedSegmentSum, std::move(data), std::move(segment_ids),
                  std::move(num_segments));
}
Tensor unsorted_segment_prod(Tensor data, Tensor segment_ids, Tensor num_segments) {
  return unsorted(kUnsortedSegmentProd, std::move(data), std::move(segment_ids),
                  std::move(num_segments));
}
Tensor unsorted_segment_max(Tensor data, Tensor segment_ids, Tensor num_segments) {
  return unsorted(kUnsortedSegmentMax, std::move(data), std::move(segment_ids),
                  std::move(num_segments));
}
Tensor unsorted_segment_min(Tensor data, Tensor segment_ids, Tensor num_segments) {
  return unsorted(kUnsortedSegmentMin, std::move(data), std::move(segment_ids),
                  std::move(num_segments));
}

Tensor unsorted_segment_mean(Tensor data, Tensor segment_ids, Tensor num_segments) {
  const DType dtype = data.dtype();
  const Tensor one = internal::int_scalar(1, dtype);
  const Tensor count =
      unsorted_segment_sum(ones_like(cast(segment_ids, dtype)), segment_ids, num_segments);
  const Tensor sum =
      unsorted_segment_sum(std::move(data), std::move(segment_ids), std::move(num_segments));
  return sum / with_rank_of(maximum(count, one), sum);
}

Tensor segment_sum(Tensor data, Tensor segment_ids) {
  return call1(kSegmentSum, {std::move(data), std::move(segment_ids)});
}
Tensor segment_mean(Tensor data, Tensor segment_ids) {
  return call1(kSegmentMean, {std::move(data), std::move(segment_ids)});
}
Tensor segment_prod(Tensor data, Tensor segment_ids) {
  return call1(kSegmentProd, {std::move(data), std::move(segment_ids)});
}
Tensor segment_max(Tensor data, Tensor segment_ids) {
  return call1(kSegmentMax, {std::move(data), std::move(segment_ids)});
}
Tensor segment_min(Tensor data, Tensor segment_ids) {
  return call1(kSegmentMin, {std::move(data), std::move(segment_ids)});
}

}  // namespace math
}  // namespace tandem
