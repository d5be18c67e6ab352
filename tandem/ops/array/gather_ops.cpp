#include "tandem/ops/gather_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

// ---- Gather ----

PartialShape gathered(const InferenceContext& c, std::optional<std::int64_t> axis,
                      std::int64_t batch_dims) {
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  c.require_rank_at_least(0, 1);
  if (!params.has_rank() || !indices.has_rank()) return PartialShape::unknown();
  if (batch_dims < 0) batch_dims += indices.rank();
  if (batch_dims < 0 || batch_dims > indices.rank()) {
    c.fail(cat("batch_dims ", batch_dims, " must be in [0, ", indices.rank(),
               "], the rank of indices."));
  }
  if (!axis) {
    return PartialShape::unknown_of_rank(params.rank() + indices.rank() - 1 -
                                         static_cast<int>(batch_dims));
  }
  const int at = internal::axis_in(c, *axis, params.rank());
  const int batch = static_cast<int>(batch_dims);
  if (batch > at)
    c.fail(cat("batch_dims (", batch, ") must be less than or equal to axis (", at, ")"));
  std::vector<std::int64_t> dims;
  for (int i = 0; i < batch; ++i) {
    dims.push_back(c.merge_dim(params.dim(i), indices.dim(i), "batch sizes of params and indices"));
  }
  for (int i = batch; i < at; ++i) dims.push_back(params.dim(i));
  for (int i = batch; i < indices.rank(); ++i) dims.push_back(indices.dim(i));
  for (int i = at + 1; i < params.rank(); ++i) dims.push_back(params.dim(i));
  return PartialShape(std::move(dims));
}

void gather_shape(InferenceContext& c) { c.set_output(0, gathered(c, 0, 0)); }

void gather_v2_shape(InferenceContext& c) {
  c.require_rank(2, 0);
  c.set_output(0, gathered(c, internal::input_int(c, 2), c.attr<std::int64_t>("batch_dims")));
}

// Size `axis` of a tensor, as an int64 scalar.
Tensor size_along(const Tensor& x, int axis) {
  const std::int64_t size = x.partial_shape().dim(axis);
  if (size != kUnknown) return Tensor(size);
  return index(shape(x, int64), {axis});
}

std::vector<std::int64_t> count_up(int from, int to) {
  std::vector<std::int64_t> list;
  for (int i = from; i < to; ++i) list.push_back(i);
  return list;
}

std::vector<std::int64_t> joined(std::initializer_list<std::vector<std::int64_t>> lists) {
  std::vector<std::int64_t> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// The sum of the gradient's slices for each row of `params` along the axis.
Tensor scatter_back(const Tensor& params, const Tensor& ids, const Tensor& grad, int axis,
                    int batch) {
  const Tensor rows = size_along(params, axis);
  const int index_rank = ids.rank();
  const int rank = params.rank();
  if (batch == 0) {
    if (axis == 0) return math::unsorted_segment_sum(grad, ids, rows);
    const auto front = joined({count_up(axis, axis + index_rank), count_up(0, axis),
                               count_up(axis + index_rank, index_rank + rank - 1)});
    const Tensor sums = math::unsorted_segment_sum(transpose(grad, front), ids, rows);
    return transpose(sums, joined({count_up(1, axis + 1), {0}, count_up(axis + 1, rank)}));
  }
  // Rows of different batches get ids of their own: batch * rows + id.
  const Tensor ids64 = cast(ids, int64);
  const Tensor sizes = shape(params, int64);
  const Tensor batch_sizes = index(sizes, {Slice(0, batch)});
  const Tensor batches = reduce_prod(batch_sizes, Tensor{0});
  const Tensor ones_behind = internal::int_vector(
      std::vector<std::int64_t>(static_cast<std::size_t>(index_rank - batch), 1), int64);
  const Tensor offset = range(batches) * rows;
  const Tensor far = ids64 + reshape(offset, concat({batch_sizes, ones_behind}, 0));
  const int between = axis - batch;
  const int kept = index_rank - batch;
  const auto front =
      joined({count_up(0, batch), count_up(batch + between, batch + between + kept),
              count_up(batch, batch + between), count_up(batch + between + kept, kept + rank - 1)});
  const Tensor sums = math::unsorted_segment_sum(transpose(grad, front), far, batches * rows);
  const Tensor split_shape =
      concat({batch_sizes, reshape(rows, {1}), index(sizes, {Slice(batch, axis)}),
              index(sizes, {Slice(axis + 1, none)})},
             0);
  return transpose(
      reshape(sums, split_shape),
      joined(
          {count_up(0, batch), count_up(batch + 1, axis + 1), {batch}, count_up(axis + 1, rank)}));
}

void gather_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, scatter_back(g.input(0), g.input(1), g.grad(), 0, 0));
}

void gather_v2_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const int rank = g.input(0).rank();
  const int index_rank = g.input(1).rank();
  const auto axis = internal::known_ints(g.input(2));
  if (rank < 0 || index_rank < 0 || !axis) {
    throw UnimplementedError(
        "The gradient of GatherV2 needs a constant axis and values of known rank. Give the "
        "function "
        "an input signature with known ranks.");
  }
  const auto batch = g.attr<std::int64_t>("batch_dims");
  g.set(0, scatter_back(g.input(0), g.input(1), g.grad(), normalize_axis(axis->at(0), rank),
                        static_cast<int>(batch < 0 ? batch + index_rank : batch)));
}

// ---- Index tuples ----

void gather_nd_shape(InferenceContext& c) {
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  c.require_rank_at_least(1, 1);
  const std::int64_t depth = indices.has_rank() ? indices.dim(-1) : kUnknown;
  if (!params.has_rank() || depth == kUnknown) return c.set_output(0, PartialShape::unknown());
  if (depth > params.rank()) {
    c.fail(cat("index innermost dimension length must be <= params rank; saw: ", depth, " vs. ",
               params.rank()));
  }
  std::vector<std::int64_t> dims = internal::dims_between(indices, 0, indices.rank() - 1);
  const auto rest = internal::dims_between(params, static_cast<int>(depth), params.rank());
  dims.insert(dims.end(), rest.begin(), rest.end());
  c.set_output(0, PartialShape(std::move(dims)));
}

// Updates must have the shape of the indices' tuples followed by the slices that they name.
void check_updates(const InferenceContext& c, const PartialShape& whole, int indices_input,
                   int updates_input) {
  const PartialShape& indices = c.input(indices_input);
  const PartialShape& updates = c.input(updates_input);
  if (!indices.has_rank() || indices.rank() == 0 || !updates.has_rank() || !whole.has_rank())
    return;
  const std::int64_t depth = indices.dim(-1);
  if (depth == kUnknown) return;
  if (depth > whole.rank()) {
    c.fail(cat("Inner dimension of indices (", depth, ") exceeds the rank of shape ", whole, "."));
  }
  std::vector<std::int64_t> dims = internal::dims_between(indices, 0, indices.rank() - 1);
  const auto rest = internal::dims_between(whole, static_cast<int>(depth), whole.rank());
  dims.insert(dims.end(), rest.begin(), rest.end());
  const PartialShape wanted(std::move(dims));
  if (!wanted.is_compatible(updates)) {
    c.fail(cat("updates must have shape ", wanted, " for indices ", indices, " into ", whole,
               " but have ", updates, "."));
  }
}

void scatter_nd_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank(2, 1);
  PartialShape out = internal::requested_shape(c, 2);
  check_updates(c, out, 0, 1);
  c.set_output(0, std::move(out));
}

void tensor_scatter_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  c.require_rank_at_least(1, 1);
  check_updates(c, c.input(0), 1, 2);
  c.set_output(0, c.input(0));
}

Tensor shape_for_indices(const Tensor& x, DType index) {
  const auto dims = internal::known_dims(x);
  return dims ? internal::int_vector(*dims, index) : shape(x, index);
}

void gather_nd_grad(GradientContext& g) {
  Tensor indices = g.input(1);
  if (indices.dtype() == DType::kInt16) indices = cast(indices, int32);
  if (g.needs(0)) {
    g.set(0, scatter_nd(indices, g.grad(), shape_for_indices(g.input(0), indices.dtype())));
  }
}

void scatter_nd_grad(GradientContext& g) { g.set(1, gather_nd(g.grad(), g.input(0))); }

void update_grad(GradientContext& g) {
  if (g.needs(0)) {
    g.set(0, tensor_scatter_nd_update(g.grad(), g.input(1), zeros_like(g.input(2))));
  }
  if (g.needs(2)) g.set(2, gather_nd(g.grad(), g.input(1)));
}

void add_grad(GradientContext& g) {
  g.set(0, g.grad());
  if (g.needs(2)) g.set(2, gather_nd(g.grad(), g.input(1)));
}

void sub_grad(GradientContext& g) {
  g.set(0, g.grad());
  if (g.needs(2)) g.set(2, -gather_nd(g.grad(), g.input(1)));
}

// To those that equal the result, in equal shares.
void extreme_grad(GradientContext& g) {
  const Tensor& indices = g.input(1);
  const DType dtype = g.input(0).dtype();
  const auto as_number = [&](const Tensor& t) { return cast(t, dtype); };
  const Tensor from_updates = as_number(equal(gather_nd(g.output(), indices), g.input(2)));
  const Tensor from_input = as_number(equal(g.output(), g.input(0)));
  const Tensor shares = tensor_scatter_nd_add(from_input, indices, from_updates);
  const Tensor share = g.grad() / shares;
  if (g.needs(0)) g.set(0, from_input * share);
  if (g.needs(2)) g.set(2, from_updates * gather_nd(share, indices));
}

// ---- Where, Unique, TopK, InvertPermutation ----

void where_shape(InferenceContext& c) {
  c.set_output(0, PartialShape({kUnknown, c.input(0).has_rank() ? c.input(0).rank() : kUnknown}));
}

void unique_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.set_output(0, internal::vector_of(kUnknown));
  c.set_output(1, internal::vector_of(c.input(0).dim(0)));
  if (c.num_outputs() > 2) c.set_output(2, internal::vector_of(kUnknown));
}

void top_k_of(InferenceContext& c, std::optional<std::int64_t> k) {
  c.require_rank_at_least(0, 1);
  if (k && *k < 0) c.fail(cat("Need k >= 0, got ", *k));
  PartialShape out = c.input(0);
  if (out.has_rank()) {
    const int last = out.rank() - 1;
    if (k && out.dim(last) != kUnknown && out.dim(last) < *k) {
      c.fail(cat("input must have last dimension >= k = ", *k, " but is ", out.dim(last)));
    }
    out.set_dim(last, k.value_or(kUnknown));
  }
  c.set_output(0, out);
  c.set_output(1, std::move(out));
}

void top_k_shape(InferenceContext& c) { top_k_of(c, c.attr<std::int64_t>("k")); }
void top_k_v2_shape(InferenceContext& c) {
  c.require_rank(1, 0);
  top_k_of(c, internal::input_int(c, 1));
}

void top_k_grad(GradientContext& g) {
  const Tensor in_shape = shape(g.input(0), int64);
  const Tensor n = size_along(g.input(0), -1);
  const Tensor k = size_along(g.output(1), -1);
  const Tensor one = Tensor(std::int64_t{1});
  const Tensor total = reduce_prod(in_shape, Tensor{0});
  const Tensor rows = floordiv(total, maximum(n, one));
  // Places in the flattened input.
  const Tensor places =
      reshape(cast(g.output(1), int64), stack({rows, k})) + reshape(range(rows) * n, {-1, 1});
  const Tensor flat =
      scatter_nd(reshape(places, {-1, 1}), reshape(g.grad(), {-1}), reshape(total, {1}));
  g.set(0, reshape(flat, in_shape));
}

const OpRegistration kGather{
    {.name = "Gather",
     .inputs = "params: Tparams, indices: Tindices",
     .outputs = "output: Tparams",
     .attrs = "validate_indices: bool = true; Tparams: type; Tindices: index",
     .shape = gather_shape,
     .gradient = gather_grad,
     .doc = "Rows of params as indices name them."}};

const OpRegistration kGatherV2{
    {.name = "GatherV2",
     .inputs = "params: Tparams, indices: Tindices, axis: Taxis",
     .outputs = "output: Tparams",
     .attrs = "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: index",
     .shape = gather_v2_shape,
     .gradient = gather_v2_grad,
     .traits = {.host_inputs = 0b100},
     .doc =
         "Slices of params along an axis, as indices name them; the first batch_dims axes of both "
         "go together."}};

const OpRegistration kGatherNd{
    {.name = "GatherNd",
     .inputs = "params: Tparams, indices: Tindices",
     .outputs = "output: Tparams",
     .attrs = "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''",
     .shape = gather_nd_shape,
     .gradient = gather_nd_grad,
     .doc = "Elements or slices of params named by the index tuples in the last axis of indices."}};

const OpRegistration kScatterNd{
    {.name = "ScatterNd",
     .inputs = "indices: Tindices, updates: T, shape: Tindices",
     .outputs = "output: T",
     .attrs = "T: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''",
     .shape = scatter_nd_shape,
     .gradient = scatter_nd_grad,
     .traits = {.host_inputs = 0b100},
     .doc = "Zeros to which updates are added at index tuples."}};

const OpRegistration kTensorScatterUpdate{
    {.name = "TensorScatterUpdate",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type; Tindices: {int16, int32, int64, uint16}; bad_indices_policy: string = ''",
     .shape = tensor_scatter_shape,
     .gradient = update_grad,
     .traits = {.may_reuse = 1},
     .doc = "The tensor with updates at index tuples."}};

const OpRegistration kTensorScatterAdd{
    {.name = "TensorScatterAdd",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type; Tindices: index; bad_indices_policy: string = ''",
     .shape = tensor_scatter_shape,
     .gradient = add_grad,
     .traits = {.may_reuse = 1},
     .doc = "The tensor with updates added at index tuples."}};

const OpRegistration kScatterNdNonAliasingAdd{
    {.name = "ScatterNdNonAliasingAdd",
     .inputs = "input: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: pod; Tindices: index; bad_indices_policy: string = ''",
     .shape = shapes::unchanged,
     .gradient = add_grad,
     .traits = {.may_reuse = 1},
     .doc = "The input with updates added at index tuples."}};

const OpRegistration kTensorScatterSub{
    {.name = "TensorScatterSub",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type; Tindices: index; bad_indices_policy: string = ''",
     .shape = tensor_scatter_shape,
     .gradient = sub_grad,
     .traits = {.may_reuse = 1},
     .doc = "The tensor with updates taken off at index tuples."}};

const OpRegistration kTensorScatterMax{
    {.name = "TensorScatterMax",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type; Tindices: index; bad_indices_policy: string = ''",
     .shape = tensor_scatter_shape,
     .gradient = extreme_grad,
     .traits = {.may_reuse = 1},
     .doc = "The tensor with the larger of its and the updates' elements at index tuples."}};

const OpRegistration kTensorScatterMin{
    {.name = "TensorScatterMin",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type; Tindices: index; bad_indices_policy: string = ''",
     .shape = tensor_scatter_shape,
     .gradient = extreme_grad,
     .traits = {.may_reuse = 1},
     .doc = "The tensor with the smaller of its and the updates' elements at index tuples."}};

const OpRegistration kWhere{{.name = "Where",
                             .inputs = "input: T",
                             .outputs = "index: int64",
                             .attrs = "T: pod = bool",
                             .shape = where_shape,
                             .gradient = not_differentiable,
                             .doc = "The index tuples of elements that are not zero, in row-major "
                                    "order."}};

const OpRegistration kUnique{{.name = "Unique",
                              .inputs = "x: T",
                              .outputs = "y: T, idx: out_idx",
                              .attrs = "T: type; out_idx: index = int32",
                              .shape = unique_shape,
                              .gradient = not_differentiable,
                              .doc =
                                  "The distinct elements in order of first occurrence, and where "
                                  "each element of x is among them."}};

const OpRegistration kUniqueWithCounts{{.name = "UniqueWithCounts",
                                        .inputs = "x: T",
                                        .outputs = "y: T, idx: out_idx, count: out_idx",
                                        .attrs = "T: type; out_idx: index = int32",
                                        .shape = unique_shape,
                                        .gradient = not_differentiable,
                                        .doc = "As Unique, with the number of occurrences."}};

const OpRegistration kTopK{{.name = "TopK",
                            .inputs = "input: T",
                            .outputs = "values: T, indices: int32",
                            .attrs = "k: int >= 0; sorted: bool = true; T: reals",
                            .shape = top_k_shape,
                            .gradient = top_k_grad,
                            .doc = "The k largest entries of each last axis, and where they are."}};

const OpRegistration kTopKV2{
    {.name = "TopKV2",
     .inputs = "input: T, k: Tk",
     .outputs = "values: T, indices: index_type",
     .attrs = "sorted: bool = true; T: reals; Tk: {int16, int32, int64} = int32; index_type: "
              "{int16, int32, int64} = int32",
     .shape = top_k_v2_shape,
     .gradient = top_k_grad,
     .traits = {.host_inputs = 0b10},
     .doc = "The k largest entries of each last axis, and where they are."}};

void vector_unchanged(InferenceContext& c) {
  c.require_rank(0, 1);
  c.set_output(0, c.input(0));
}

const OpRegistration kInvertPermutation{{.name = "InvertPermutation",
                                         .inputs = "x: T",
                                         .outputs = "y: T",
                                         .attrs = "T: index = int32",
                                         .shape = vector_unchanged,
                                         .gradient = not_differentiable,
                                         .doc = "y with y[x[i]] = i, for a permutation x."}};

}  // namespace

Tensor gather(Tensor params, Tensor indices, std::optional<std::int64_t> axis,
              std::int64_t batch_dims) {
  Tensor at = internal::index_scalar(axis.value_or(batch_dims));
  return call1(kGatherV2, {std::move(params), std::move(indices), std::move(at)},
               {{"batch_dims", batch_dims}});
}

Tensor gather_nd(Tensor params, Tensor indices, std::int64_t batch_dims) {
  if (batch_dims == 0) return call1(kGatherNd, {std::move(params), std::move(indices)});
  // The batch's own indices in front of each tuple.
  const PartialShape s = indices.partial_shape();
  if (!s.has_rank() || batch_dims < 0 || batch_dims >= s.rank()) {
    throw InvalidArgumentError(cat("td::gather_nd: batch_dims ", batch_dims,
                                   " must be in [0, rank of indices), and indices have shape ", s,
                                   "."));
  }
  const Tensor sizes = shape(indices, int64);
  const Tensor tuples_shape =
      concat({index(sizes, {Slice(0, -1)}), Tensor::from(std::vector<std::int64_t>{1})}, 0);
  std::vector<Tensor> parts;
  for (int i = 0; i < batch_dims; ++i) {
    std::vector<std::int64_t> along(static_cast<std::size_t>(s.rank()), 1);
    along[static_cast<std::size_t>(i)] = -1;
    const Tensor row = reshape(range(index(sizes, {i})), along);
    parts.push_back(broadcast_to(row, tuples_shape));
  }
  parts.push_back(indices.dtype() == int64 ? indices : cast(indices, int64));
  return call1(kGatherNd, {std::move(params), concat(parts, -1)});
}

Tensor scatter_nd(Tensor indices, Tensor updates, const IntList& shape) {
  Tensor sizes = shape.tensor(indices.dtype());
  return call1(kScatterNd, {std::move(indices), std::move(updates), std::move(sizes)});
}

Tensor tensor_scatter_nd_update(Tensor tensor, Tensor indices, Tensor updates) {
  return call1(kTensorScatterUpdate, {std::move(tensor), std::move(indices), std::move(updates)});
}
Tensor tensor_scatter_nd_add(Tensor tensor, Tensor indices, Tensor updates) {
  return call1(kTensorScatterAdd, {std::move(tensor), std::move(indices), std::move(updates)});
}
Tensor tensor_scatter_nd_sub(Tensor tensor, Tensor indices, Tensor updates) {
  return call1(kTensorScatterSub, {std::move(tensor), std::move(indices), std::move(updates)});
}
Tensor tensor_scatter_nd_max(Tensor tensor, Tensor indices, Tensor updates) {
  return call1(kTensorScatterMax, {std::move(tensor), std::move(indices), std::move(updates)});
}
Tensor tensor_scatter_nd_min(Tensor tensor, Tensor indices, Tensor updates) {
  return call1(kTensorScatterMin, {std::move(tensor), std::move(indices), std::move(updates)});
}

Tensor where(Tensor condition) { return call1(kWhere, {std::move(condition)}); }

Tensor boolean_mask(Tensor tensor, Tensor mask, std::int64_t axis) {
  const PartialShape whole = tensor.partial_shape();
  const PartialShape part = mask.partial_shape();
  if (!whole.has_rank() || !part.has_rank()) {
    throw InvalidArgumentError("td::boolean_mask needs a tensor and a mask of known ranks.");
  }
  if (part.rank() == 0) throw InvalidArgumentError("mask cannot be scalar.");
  const int at = normalize_axis(axis, whole.rank());
  if (at + part.rank() > whole.rank()) {
    throw InvalidArgumentError(cat("Shapes ", whole, " and ", part, " are incompatible"));
  }
  for (int i = 0; i < part.rank(); ++i) {
    const std::int64_t a = whole.dim(at + i);
    if (a != kUnknown && part.dim(i) != kUnknown && a != part.dim(i)) {
      throw InvalidArgumentError(cat("Shapes ", whole, " and ", part, " are incompatible"));
    }
  }
  // The masked axes as one.
  const Tensor sizes = shape(tensor, int64);
  const Tensor flat_shape =
      concat({index(sizes, {Slice(0, at)}), Tensor::from(std::vector<std::int64_t>{-1}),
              index(sizes, {Slice(at + part.rank(), none)})},
             0);
  const Tensor places = index(where(reshape(std::move(mask), {-1})), {Slice(), 0});
  if (part.rank() == 1) return gather(std::move(tensor), places, at);
  return gather(reshape(std::move(tensor), flat_shape), places, at);
}

UniqueResult unique(Tensor x, DType out_idx) {
  auto out = call(kUnique, {std::move(x)}, {{"out_idx", out_idx}});
  return {std::move(out[0]), std::move(out[1])};
}

UniqueCounts unique_with_counts(Tensor x, DType out_idx) {
  auto out = call(kUniqueWithCounts, {std::move(x)}, {{"out_idx", out_idx}});
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

math::TopK math::top_k(Tensor input, std::int64_t k, bool sorted, DType index_type) {
  auto out = call(kTopKV2, {std::move(input), internal::index_scalar(k)},
                  {{"sorted", sorted}, {"index_type", index_type}});
  return {std::move(out[0]), std::move(out[1])};
}

Tensor math::invert_permutation(Tensor x) { return call1(kInvertPermutation, {std::move(x)}); }

}  // namespace tandem
