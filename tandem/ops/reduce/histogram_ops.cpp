#include "tandem/ops/histogram_ops.h"

#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

std::int64_t size_input(const InferenceContext& c, int i) {
  c.require_rank(i, 0);
  const auto size = internal::input_int(c, i);
  if (size && *size < 0) c.fail(cat("size (", *size, ") must be non-negative"));
  return size.value_or(kUnknown);
}

void bincount_shape(InferenceContext& c) { c.set_output(0, internal::vector_of(size_input(c, 1))); }

void dense_bincount_shape(InferenceContext& c) {
  const PartialShape& in = c.input(0);
  const std::int64_t size = size_input(c, 1);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  if (in.rank() > 2) c.fail(cat("Shape must be at most rank 2 but is rank ", in.rank()));
  if (in.rank() == 2) return c.set_output(0, PartialShape({in.dim(0), size}));
  c.set_output(0, internal::vector_of(size));
}

void ragged_bincount_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  const std::int64_t splits = c.input(0).dim(0);
  const std::int64_t size = size_input(c, 2);
  c.set_output(0, PartialShape({splits > 0 ? splits - 1 : kUnknown, size}));
}

void sparse_bincount_shape(InferenceContext& c) {
  const std::int64_t size = size_input(c, 3);
  const auto dims = c.input_ints(2);
  if (!dims) return c.set_output(0, PartialShape::unknown());
  if (dims->size() == 1) return c.set_output(0, internal::vector_of(size));
  if (dims->size() != 2) c.fail("Input must be less than rank 2");
  c.set_output(0, PartialShape({dims->front(), size}));
}

void histogram_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  c.require_rank(2, 0);
  c.merge_dim(c.input(1).dim(0), 2, "ends of value_range");
  const auto bins = internal::input_int(c, 2);
  if (bins && *bins <= 0) c.fail(cat("Requires nbins > 0, got ", *bins));
  c.set_output(0, internal::vector_of(bins.value_or(kUnknown)));
}

void bound_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  c.merge_dim(c.input(0).dim(0), c.input(1).dim(0), "rows of sorted_inputs and values");
  c.set_output(0, c.input(1));
}

void nth_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank(1, 0);
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return c.set_output(0, PartialShape::unknown());
  const auto n = internal::input_int(c, 1);
  if (n && *n < 0) c.fail(cat("n must be non-negative but is ", *n));
  if (n && in.dim(-1) != kUnknown && *n >= in.dim(-1)) {
    c.fail(cat("Input must have last dimension > n = ", *n, " but is ", in.dim(-1)));
  }
  c.set_output(0, PartialShape(internal::dims_between(in, 0, in.rank() - 1)));
}

void nth_grad(GradientContext& g) {
  const Tensor chosen = cast(equal(expand_dims(g.output(), -1), g.input(0)), g.grad().dtype());
  const Tensor count = expand_dims(reduce_sum(chosen, -1), -1);
  g.set(0, chosen / count * expand_dims(g.grad(), -1));
}

void cross_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  const PartialShape both = c.input(0).merge(c.input(1));
  if (both.has_rank()) c.merge_dim(both.dim(-1), 3, "entries of a vector");
  c.set_output(0, both);
}

void cross_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, linalg::cross(g.input(1), g.grad()));
  if (g.needs(1)) g.set(1, linalg::cross(g.grad(), g.input(0)));
}

constexpr const char* kWeights = "T: {int32, int64, float, double}";
constexpr const char* kBincountAttrs =
    "Tidx: index; T: {int32, int64, float, double}; binary_output: bool = false";

const OpRegistration kBincount{{.name = "Bincount",
                                .inputs = "arr: int32, size: int32, weights: T",
                                .outputs = "bins: T",
                                .attrs = kWeights,
                                .shape = bincount_shape,
                                .gradient = not_differentiable,
                                .traits = {.host_inputs = 0b10},
                                .doc = "How often each of 0 … size - 1 occurs."}};

const OpRegistration kDenseBincount{
    {.name = "DenseBincount",
     .inputs = "input: Tidx, size: Tidx, weights: T",
     .outputs = "output: T",
     .attrs = kBincountAttrs,
     .shape = dense_bincount_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b10},
     .doc = "How often each of 0 … size - 1 occurs, in all or in each row."}};

const OpRegistration kSparseBincount{
    {.name = "SparseBincount",
     .inputs = "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T",
     .outputs = "output: T",
     .attrs = kBincountAttrs,
     .shape = sparse_bincount_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b1100},
     .doc = "As DenseBincount, for the elements that a sparse tensor has."}};

const OpRegistration kRaggedBincount{
    {.name = "RaggedBincount",
     .inputs = "splits: int64, values: Tidx, size: Tidx, weights: T",
     .outputs = "output: T",
     .attrs = kBincountAttrs,
     .shape = ragged_bincount_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b100},
     .doc = "As DenseBincount, for rows of different lengths."}};

const OpRegistration kHistogram{
    {.name = "HistogramFixedWidth",
     .inputs = "values: T, value_range: T, nbins: int32",
     .outputs = "out: dtype",
     .attrs = "T: {int32, int64, float, double}; dtype: index = int32",
     .shape = histogram_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b110},
     .doc = "How many values fall into each of nbins equal parts of a range."}};

const OpRegistration kBucketize{{.name = "Bucketize",
                                 .inputs = "input: T",
                                 .outputs = "output: int32",
                                 .attrs = "T: {int32, int64, float, double}; boundaries: "
                                          "list(float)",
                                 .shape = shapes::unchanged,
                                 .gradient = not_differentiable,
                                 .traits = {.elementwise = true},
                                 .doc = "For each value the number of boundaries not above it."}};

const OpRegistration kLowerBound{{.name = "LowerBound",
                                  .inputs = "sorted_inputs: T, values: T",
                                  .outputs = "output: out_type",
                                  .attrs = "T: type; out_type: index = int32",
                                  .shape = bound_shape,
                                  .gradient = not_differentiable,
                                  .doc = "In each row, the first place that holds no less."}};

const OpRegistration kUpperBound{{.name = "UpperBound",
                                  .inputs = "sorted_inputs: T, values: T",
                                  .outputs = "output: out_type",
                                  .attrs = "T: type; out_type: index = int32",
                                  .shape = bound_shape,
                                  .gradient = not_differentiable,
                                  .doc = "In each row, the first place that holds more."}};

const OpRegistration kNthElement{{.name = "NthElement",
                                  .inputs = "input: T, n: int32",
                                  .outputs = "values: T",
                                  .attrs = "reverse: bool = false; T: reals",
                                  .shape = nth_shape,
                                  .gradient = nth_grad,
                                  .traits = {.host_inputs = 0b10},
                                  .doc = "The n-th smallest entry of each last axis, counted from "
                                         "0."}};

const OpRegistration kCross{{.name = "Cross",
                             .inputs = "a: T, b: T",
                             .outputs = "product: T",
                             .attrs = "T: reals",
                             .shape = cross_shape,
                             .gradient = cross_grad,
                             .doc = "The vector products of vectors of three entries."}};

}  // namespace

Tensor histogram_fixed_width(Tensor values, Tensor value_range, std::int64_t nbins, DType dtype) {
  return call1(
      kHistogram,
      {std::move(values), std::move(value_range), internal::int_scalar(nbins, DType::kInt32)},
      {{"dtype", dtype}});
}

Tensor searchsorted(Tensor sorted_sequence, Tensor values, bool right, DType out_type) {
  // Both as matrices; the rows of the values follow from the number of their columns.
  const auto rows = [](const Tensor& t) {
    const Tensor columns = reshape(index(shape(t), {-1}), {1});
    return reshape(t, concat({internal::int_vector({-1}, DType::kInt32), columns}, 0));
  };
  const Tensor whole = shape(values);
  return reshape(call1(right ? kUpperBound : kLowerBound, {rows(sorted_sequence), rows(values)},
                       {{"out_type", out_type}}),
                 whole);
}

Tensor math::bincount(Tensor arr, std::int64_t size, Tensor weights, DType dtype,
                      bool binary_output) {
  if (!weights.defined()) weights = zeros({0}, dtype);
  const Tensor count = internal::int_scalar(size, arr.dtype());
  return call1(kDenseBincount, {std::move(arr), count, std::move(weights)},
               {{"binary_output", binary_output}});
}

Tensor nn::bucketize(Tensor input, const std::vector<float>& boundaries) {
  return call1(kBucketize, {std::move(input)}, {{"boundaries", boundaries}});
}

Tensor nn::nth_element(Tensor input, std::int64_t n, bool reverse) {
  return call1(kNthElement, {std::move(input), internal::int_scalar(n, DType::kInt32)},
               {{"reverse", reverse}});
}

Tensor linalg::cross(Tensor a, Tensor b) { return call1(kCross, {std::move(a), std::move(b)}); }

}  // namespace tandem
