#include "tandem/ops/ragged_functions.h"

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/histogram_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/partition_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/sparse_functions.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::ragged {
namespace {

void require_axis_1(const RaggedTensor& x, std::int64_t axis) {
  if (axis == 1 && x.ragged_rank() == 1) return;
  throw InvalidArgumentError(cat("td::ragged: axis ", axis, " of a tensor of ragged rank ",
                                 x.ragged_rank(),
                                 " cannot be reduced: it is axis 1 of ragged rank 1, else reduce "
                                 "the flat values."));
}

Tensor rows_of(const RaggedTensor& x) { return cast(x.nrows(), int32); }

}  // namespace

RaggedTensor range(const Tensor& starts, const Tensor& limits, const Tensor& deltas,
                   DType row_splits_dtype) {
  const Tensor from = limits.defined() ? starts : zeros_like(starts);
  const Tensor to = limits.defined() ? limits : starts;
  auto parts = raw_op("RaggedRange", {from, cast(to, from.dtype()), cast(deltas, from.dtype())},
                      {{"Tsplits", row_splits_dtype}});
  return RaggedTensor::from_row_splits(std::move(parts[1]), std::move(parts[0]), false);
}

Tensor row_splits_to_segment_ids(const Tensor& splits, std::optional<DType> out_type) {
  // Row i + 1 begins at splits[i + 1]: the number of rows that have ended up to a value is its row.
  const Tensor ends = splits[Slice(1, none)];
  const Tensor count = splits[-1];
  const Tensor zero = cast(Tensor(0), splits.dtype()), one = cast(Tensor(1), splits.dtype());
  const Tensor places = tandem::range(zero, count, one);
  return cast(searchsorted(ends, places, true), out_type.value_or(splits.dtype()));
}

Tensor segment_ids_to_row_splits(const Tensor& ids, const Tensor& num_segments,
                                 std::optional<DType> given) {
  const DType out_type = given.value_or(ids.dtype());
  Tensor count;
  if (num_segments.defined()) {
    count = cast(num_segments, int32);
  } else {
    count = cast(tandem::reduce_max(
                     tandem::concat({tandem::fill({1}, cast(Tensor(-1), ids.dtype())), ids}, 0)),
                 int32) +
            1;
  }
  const Tensor lengths = math::unsorted_segment_sum(ones_like(ids, out_type), ids, count);
  return tandem::concat({zeros({1}, out_type), cumsum(lengths)}, 0);
}

RaggedTensor stack(const std::vector<Tensor>& values) {
  std::vector<Tensor> lengths;
  for (const Tensor& value : values) lengths.push_back(shape(value, int64)[0]);
  return RaggedTensor::from_row_lengths(tandem::concat(values, 0), tandem::stack(lengths));
}

RaggedTensor stack_dynamic_partitions(const Tensor& data, const Tensor& partitions,
                                      std::int64_t num_partitions) {
  return ragged::stack(dynamic_partition(data, partitions, num_partitions));
}

RaggedTensor boolean_mask(const Tensor& data, const Tensor& mask) {
  if (mask.rank() != 2) {
    throw InvalidArgumentError(cat("td::ragged::boolean_mask: the mask has shape ",
                                   mask.partial_shape(),
                                   ": of a tensor it has rank 2; td::boolean_mask takes any."));
  }
  return RaggedTensor::from_row_lengths(tandem::boolean_mask(data, mask),
                                        tandem::reduce_sum(cast(mask, int64), 1));
}

RaggedTensor boolean_mask(const RaggedTensor& data, const RaggedTensor& mask) {
  const Tensor kept = tandem::boolean_mask(data.flat_values(), mask.flat_values());
  const Tensor lengths = reduce_sum(mask.with_flat_values(cast(mask.flat_values(), int64)));
  return RaggedTensor::from_row_lengths(kept, lengths);
}

RaggedTensor gather(const RaggedTensor& params, const Tensor& indices) {
  std::vector<Tensor> inputs = params.nested_row_splits();
  const std::int64_t rank = params.ragged_rank();
  inputs.push_back(params.flat_values());
  inputs.push_back(indices);
  auto parts =
      raw_op("RaggedGather", inputs,
             {{"PARAMS_RAGGED_RANK", rank}, {"OUTPUT_RAGGED_RANK", rank + indices.rank() - 1}});
  Tensor values = std::move(parts.back());
  parts.pop_back();
  return RaggedTensor::from_nested_row_splits(std::move(values), std::move(parts), false);
}

RaggedTensor concat(const std::vector<RaggedTensor>& values, std::int64_t axis) {
  if (values.empty()) throw InvalidArgumentError("td::ragged::concat: there is nothing to join.");
  if (axis != 0 && axis != 1) {
    throw InvalidArgumentError(cat("td::ragged::concat: axis ", axis, " is neither 0 nor 1."));
  }
  std::vector<Tensor> flat, lengths;
  for (const RaggedTensor& x : values) {
    flat.push_back(x.values());
    lengths.push_back(x.row_lengths());
  }
  RaggedTensor all =
      RaggedTensor::from_row_lengths(tandem::concat(flat, 0), tandem::concat(lengths, 0), false);
  if (axis == 0) return all;
  // Row r of part p is row p * rows + r of all: taken part by part within each row.
  const Tensor parts = Tensor(static_cast<int>(values.size()));
  const Tensor rows = cast(values.front().nrows(), int32);
  const Tensor grid = transpose(
      tandem::reshape(tandem::range(rows * parts), {static_cast<std::int64_t>(values.size()), -1}));
  const RaggedTensor ordered = gather(all, tandem::reshape(grid, {-1}));
  return RaggedTensor::from_row_lengths(ordered.values(), add_n(lengths), false);
}

Tensor reduce_sum(const RaggedTensor& x, std::int64_t axis) {
  require_axis_1(x, axis);
  return math::unsorted_segment_sum(x.values(), x.value_rowids(), rows_of(x));
}
Tensor reduce_mean(const RaggedTensor& x, std::int64_t axis) {
  require_axis_1(x, axis);
  const Tensor sums = reduce_sum(x);
  Tensor counts = cast(x.row_lengths(), x.dtype());
  for (int i = 1; i < sums.rank(); ++i) counts = expand_dims(counts, -1);
  return sums / counts;
}
Tensor reduce_max(const RaggedTensor& x, std::int64_t axis) {
  require_axis_1(x, axis);
  return math::unsorted_segment_max(x.values(), x.value_rowids(), rows_of(x));
}
Tensor reduce_min(const RaggedTensor& x, std::int64_t axis) {
  require_axis_1(x, axis);
  return math::unsorted_segment_min(x.values(), x.value_rowids(), rows_of(x));
}
Tensor reduce_prod(const RaggedTensor& x, std::int64_t axis) {
  require_axis_1(x, axis);
  return math::unsorted_segment_prod(x.values(), x.value_rowids(), rows_of(x));
}

namespace {

std::vector<SparseTensor> all_sparse(const std::vector<RaggedTensor>& inputs) {
  std::vector<SparseTensor> all;
  for (const RaggedTensor& x : inputs) all.push_back(x.to_sparse());
  return all;
}

}  // namespace

RaggedTensor cross(const std::vector<RaggedTensor>& inputs) {
  return RaggedTensor::from_sparse(sparse::cross(all_sparse(inputs)));
}
RaggedTensor cross_hashed(const std::vector<RaggedTensor>& inputs, std::int64_t num_buckets,
                          std::int64_t hash_key) {
  return RaggedTensor::from_sparse(sparse::cross_hashed(all_sparse(inputs), num_buckets, hash_key));
}

}  // namespace tandem::ragged
