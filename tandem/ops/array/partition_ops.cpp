#include "tandem/ops/partition_ops.h"

#include <algorithm>
#include <utility>

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

// What follows `prefix` in `whole`; fails unless whole starts with it.
PartialShape rest_after(const InferenceContext& c, const PartialShape& whole,
                        const PartialShape& prefix, std::string_view names) {
  if (!whole.has_rank() || !prefix.has_rank()) return PartialShape::unknown();
  if (prefix.rank() > whole.rank()) {
    c.fail(cat(names, ": shape ", whole, " does not start with ", prefix, "."));
  }
  for (int i = 0; i < prefix.rank(); ++i) c.merge_dim(whole.dim(i), prefix.dim(i), names);
  return PartialShape(internal::dims_between(whole, prefix.rank(), whole.rank()));
}

PartialShape with_rows(std::int64_t rows, const PartialShape& rest) {
  if (!rest.has_rank()) return PartialShape::unknown();
  std::vector<std::int64_t> dims{rows};
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  return PartialShape(std::move(dims));
}

void partition_shape(InferenceContext& c) {
  const PartialShape rest = rest_after(c, c.input(0), c.input(1), "data and partitions");
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, with_rows(kUnknown, rest));
}

void partition_grad(GradientContext& g) {
  const Tensor& partitions = g.input(1);
  const Tensor where = reshape(range(size(partitions)), shape(partitions));
  const auto n = g.attr<std::int64_t>("num_partitions");
  std::vector<Tensor> grads;
  for (int i = 0; i < g.num_outputs(); ++i) grads.push_back(g.grad(i));
  const Tensor whole = parallel_dynamic_stitch(dynamic_partition(where, partitions, n), grads);
  g.set(0, reshape(whole, shape(g.input(0))));
}

void stitch_shape(InferenceContext& c) {
  const int n = c.num_inputs() / 2;
  PartialShape rest;
  std::int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    rest = rest.merge(rest_after(c, c.input(n + i), c.input(i), "data and indices"));
    const auto indices = c.input_ints(i);
    if (!indices) rows = kUnknown;
    if (rows == kUnknown) continue;
    for (std::int64_t index : *indices) rows = std::max(rows, index + 1);
  }
  c.set_output(0, with_rows(rows, rest));
}

void stitch_grad(GradientContext& g) {
  const int n = g.num_inputs() / 2;
  for (int i = 0; i < n; ++i) {
    if (g.needs(n + i)) g.set(n + i, gather(g.grad(), g.input(i), 0));
  }
}

void list_diff_shape(InferenceContext& c) {
  c.require_rank(0, 1);
  c.require_rank(1, 1);
  c.set_output(0, internal::vector_of(kUnknown));
  c.set_output(1, internal::vector_of(kUnknown));
}

void unique_shape(InferenceContext& c) {
  c.require_rank(1, 1);
  PartialShape y = c.input(0);
  const auto axis = c.input_ints(1);
  std::int64_t length = kUnknown;
  if (axis && y.has_rank()) {
    if (axis->size() > 1) c.fail("axis does not support input tensors larger than 1 elements");
    if (axis->empty()) {
      c.require_rank(0, 1);
      length = y.dim(0);
      y = internal::vector_of(kUnknown);
    } else {
      const int at = internal::axis_in(c, axis->front(), y.rank());
      length = y.dim(at);
      y.set_dim(at, kUnknown);
    }
  } else {
    y = PartialShape::unknown();
  }
  c.set_output(0, std::move(y));
  c.set_output(1, internal::vector_of(length));
  if (c.num_outputs() > 2) c.set_output(2, internal::vector_of(kUnknown));
}

const OpRegistration kDynamicPartition{{.name = "DynamicPartition",
                                        .inputs = "data: T, partitions: int32",
                                        .outputs = "outputs: num_partitions * T",
                                        .attrs = "num_partitions: int >= 1; T: type",
                                        .shape = partition_shape,
                                        .gradient = partition_grad,
                                        .doc = "Rows of data sorted into tensors by number."}};

const OpRegistration kDynamicStitch{{.name = "DynamicStitch",
                                     .inputs = "indices: N * int32, data: N * T",
                                     .outputs = "merged: T",
                                     .attrs = "N: int >= 1; T: type",
                                     .shape = stitch_shape,
                                     .gradient = stitch_grad,
                                     .traits = {.host_inputs = 1},
                                     .doc = "Rows of several tensors put to the indices that the "
                                            "indices name; the last for a place wins."}};

const OpRegistration kParallelDynamicStitch{
    {.name = "ParallelDynamicStitch",
     .inputs = "indices: N * int32, data: N * T",
     .outputs = "merged: T",
     .attrs = "N: int >= 1; T: type",
     .shape = stitch_shape,
     .gradient = stitch_grad,
     .traits = {.host_inputs = 1},
     .doc = "Like DynamicStitch, for indices that occur once each."}};

const OpRegistration kListDiff{{.name = "ListDiff",
                                .inputs = "x: T, y: T",
                                .outputs = "out: T, idx: out_idx",
                                .attrs = "T: type; out_idx: index = int32",
                                .shape = list_diff_shape,
                                .gradient = not_differentiable,
                                .doc = "The elements of x that y has not, and their indices."}};

const OpRegistration kUniqueV2{
    {.name = "UniqueV2",
     .inputs = "x: T, axis: Taxis",
     .outputs = "y: T, idx: out_idx",
     .attrs = "T: type; Taxis: index = int64; out_idx: index = int32",
     .shape = unique_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b10},
     .doc = "The distinct slices along an axis in order of first occurrence, and where each slice "
            "of x is among them."}};

const OpRegistration kUniqueWithCountsV2{
    {.name = "UniqueWithCountsV2",
     .inputs = "x: T, axis: Taxis",
     .outputs = "y: T, idx: out_idx, count: out_idx",
     .attrs = "T: type; Taxis: index = int64; out_idx: index = int32",
     .shape = unique_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b10},
     .doc = "As UniqueV2, with the number of occurrences."}};

Tensor stitch(const OpRegistration& op, const std::vector<Tensor>& indices,
              const std::vector<Tensor>& data) {
  if (indices.size() != data.size()) {
    throw InvalidArgumentError(cat("There are ", indices.size(), " tensors of indices but ",
                                   data.size(), " of data: give one each."));
  }
  std::vector<Tensor> inputs = indices;
  inputs.insert(inputs.end(), data.begin(), data.end());
  return call1(op, inputs, {{"N", indices.size()}});
}

}  // namespace

std::vector<Tensor> dynamic_partition(Tensor data, Tensor partitions, std::int64_t num_partitions) {
  return call(kDynamicPartition, {std::move(data), std::move(partitions)},
              {{"num_partitions", num_partitions}});
}

Tensor dynamic_stitch(const std::vector<Tensor>& indices, const std::vector<Tensor>& data) {
  return stitch(kDynamicStitch, indices, data);
}

Tensor parallel_dynamic_stitch(const std::vector<Tensor>& indices,
                               const std::vector<Tensor>& data) {
  return stitch(kParallelDynamicStitch, indices, data);
}

ListDiff setdiff1d(Tensor x, Tensor y, DType index_dtype) {
  auto out = call(kListDiff, {std::move(x), std::move(y)}, {{"out_idx", index_dtype}});
  return {std::move(out[0]), std::move(out[1])};
}

UniqueResult unique_slices(Tensor x, std::int64_t axis, DType out_idx) {
  auto out = call(kUniqueV2, {std::move(x), internal::int_vector({axis}, DType::kInt64)},
                  {{"out_idx", out_idx}});
  return {std::move(out[0]), std::move(out[1])};
}

UniqueCounts unique_slices_with_counts(Tensor x, std::int64_t axis, DType out_idx) {
  auto out = call(kUniqueWithCountsV2, {std::move(x), internal::int_vector({axis}, DType::kInt64)},
                  {{"out_idx", out_idx}});
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

}  // namespace tandem
