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

void require_equal_ragged_rank(const std::vector<RaggedTensor>& values, const char* what) {
  if (values.empty()) throw InvalidArgumentError(cat("td::ragged::", what, ": there is nothing."));
  for (const RaggedTensor& x : values) {
    if (!x.defined() || x.ragged_rank() != values.front().ragged_rank()) {
      throw InvalidArgumentError(cat("td::ragged::", what,
                                     ": the tensors must have one ragged "
                                     "rank; they are of shapes ",
                                     values.front().shape(), " and ",
                                     x.defined() ? x.shape() : PartialShape(), "."));
    }
  }
}

// Splits from the lengths of all rows of a level.
Tensor splits_of(const std::vector<Tensor>& lengths) {
  const Tensor all = tandem::concat(lengths, 0);
  return tandem::concat({zeros({1}, all.dtype()), cumsum(all)}, 0);
}

// One after the other, of any ragged rank.
RaggedTensor concat_rows(const std::vector<RaggedTensor>& values) {
  const auto depth = static_cast<std::size_t>(values.front().ragged_rank());
  const DType dtype = values.front().row_splits().dtype();
  std::vector<Tensor> flat, splits;
  for (const RaggedTensor& x : values) flat.push_back(x.flat_values());
  for (std::size_t level = 0; level < depth; ++level) {
    std::vector<Tensor> lengths;
    for (const RaggedTensor& x : values) {
      const Tensor& own = x.nested_row_splits()[level];
      lengths.push_back(cast(own[Slice(1, none)] - own[Slice(none, -1)], dtype));
    }
    splits.push_back(splits_of(lengths));
  }
  return RaggedTensor::from_nested_row_splits(tandem::concat(flat, 0), std::move(splits), false);
}

// Row r of each, for r = 0, 1, …, of tensors with equal numbers of rows.
RaggedTensor interleave_rows(const std::vector<RaggedTensor>& values) {
  const Tensor parts = Tensor(static_cast<int>(values.size()));
  const Tensor grid = transpose(tandem::reshape(tandem::range(rows_of(values.front()) * parts),
                                                {static_cast<std::int64_t>(values.size()), -1}));
  return ragged::gather(concat_rows(values), tandem::reshape(grid, {-1}));
}

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
  const Tensor lengths = ragged::reduce_sum(mask.with_flat_values(cast(mask.flat_values(), int64)));
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
  require_equal_ragged_rank(values, "concat");
  if (axis == 0) return concat_rows(values);
  if (axis != 1 || values.front().ragged_rank() != 1) {
    throw InvalidArgumentError(cat("td::ragged::concat: axis ", axis, " of ragged rank ",
                                   values.front().ragged_rank(),
                                   ": axis 0 is supported, and axis 1 of ragged rank 1."));
  }
  std::vector<Tensor> lengths;
  for (const RaggedTensor& x : values) lengths.push_back(x.row_lengths());
  return RaggedTensor::from_row_lengths(interleave_rows(values).values(), add_n(lengths), false);
}

RaggedTensor stack(const std::vector<RaggedTensor>& values, std::int64_t axis) {
  require_equal_ragged_rank(values, "stack");
  if (axis == 0) {
    const DType dtype = values.front().row_splits().dtype();
    std::vector<Tensor> rows;
    for (const RaggedTensor& x : values) rows.push_back(cast(x.nrows(), dtype));
    return RaggedTensor::from_row_splits(concat_rows(values), splits_of({tandem::stack(rows)}),
                                         false);
  }
  if (axis != 1) {
    throw InvalidArgumentError(cat("td::ragged::stack: axis ", axis, " is neither 0 nor 1."));
  }
  RaggedTensor rows = interleave_rows(values);
  const Tensor parts = Tensor(static_cast<int>(values.size()));
  const Tensor ends = tandem::range(rows_of(values.front()) + 1) * parts;
  const DType dtype = rows.row_splits().dtype();
  return RaggedTensor::from_row_splits(std::move(rows), cast(ends, dtype), false);
}

Tensor reduce_sum(const RaggedTensor& x, std::int64_t axis) {
  require_axis_1(x, axis);
  return math::unsorted_segment_sum(x.values(), x.value_rowids(), rows_of(x));
}
Tensor reduce_mean(const RaggedTensor& x, std::int64_t axis) {
  require_axis_1(x, axis);
  const Tensor sums = ragged::reduce_sum(x);
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

namespace tandem {

RaggedTensor stack(const std::vector<RaggedTensor>& values, std::int64_t axis) {
  return ragged::stack(values, axis);
}
RaggedTensor concat(const std::vector<RaggedTensor>& values, std::int64_t axis) {
  return ragged::concat(values, axis);
}
Tensor reduce_sum(const RaggedTensor& x, std::optional<std::int64_t> axis) {
  return axis ? ragged::reduce_sum(x, *axis) : reduce_sum(x.flat_values());
}
Tensor reduce_mean(const RaggedTensor& x, std::optional<std::int64_t> axis) {
  return axis ? ragged::reduce_mean(x, *axis) : reduce_mean(x.flat_values());
}
Tensor reduce_max(const RaggedTensor& x, std::optional<std::int64_t> axis) {
  return axis ? ragged::reduce_max(x, *axis) : reduce_max(x.flat_values());
}
Tensor reduce_min(const RaggedTensor& x, std::optional<std::int64_t> axis) {
  return axis ? ragged::reduce_min(x, *axis) : reduce_min(x.flat_values());
}
Tensor reduce_prod(const RaggedTensor& x, std::optional<std::int64_t> axis) {
  return axis ? ragged::reduce_prod(x, *axis) : reduce_prod(x.flat_values());
}
RaggedTensor gather(const RaggedTensor& params, const Tensor& indices) {
  return ragged::gather(params, indices);
}
RaggedTensor cast(const RaggedTensor& x, DTypeLike dtype) {
  return x.with_flat_values(cast(x.flat_values(), dtype));
}

namespace {

// Where a slice's end lies in rows of these lengths, as Python cuts it; `low` is the least place,
// `cut` how far below the length the greatest is.
Tensor resolved(std::int64_t end, const Tensor& lengths, std::int64_t low, std::int64_t cut) {
  return end < 0 ? maximum(lengths + end, low) : minimum(Tensor(end), lengths - cut);
}

}  // namespace

RaggedTensor RaggedTensor::operator[](std::initializer_list<Slice> entries) const {
  if (entries.size() == 0) return *this;
  if (entries.size() > 2) {
    throw InvalidArgumentError(
        cat("RaggedTensor: an index has at most two slices, of rows and of "
            "what is in them, but ",
            entries.size(), " are given."));
  }
  const RaggedTensor rows = (*this)[*entries.begin()];
  if (entries.size() == 1) return rows;
  const Slice& part = *(entries.begin() + 1);
  if (part.step == 0) throw InvalidArgumentError("slice step cannot be zero");
  const Tensor starts = cast(rows.row_starts(), int64), lengths = cast(rows.row_lengths(), int64);
  const bool forward = part.step > 0;
  const std::int64_t low = forward ? 0 : -1, cut = forward ? 0 : 1;
  Tensor begin = forward ? zeros_like(lengths) : lengths - 1;
  if (part.begin) begin = resolved(*part.begin, lengths, low, cut);
  Tensor end = forward ? lengths : zeros_like(lengths) - 1;
  if (part.end) end = resolved(*part.end, lengths, low, cut);
  const RaggedTensor picked =
      ragged::range(starts + begin, starts + end, Tensor(part.step), row_splits().dtype());
  if (ragged_rank() > 1)
    return from_row_splits(ragged::gather(rows.ragged_values(), picked.values()),
                           picked.row_splits(), false);
  return from_row_splits(tandem::gather(rows.values(), picked.values()), picked.row_splits(),
                         false);
}

RaggedTensor RaggedTensor::operator[](const Slice& rows) const {
  return ragged::gather(*this, tandem::range(cast(nrows(), int64))[rows]);
}

namespace {

// The row splits must agree; where they are computed later, the op on the values finds out.
void require_equal_rows(const RaggedTensor& a, const RaggedTensor& b) {
  bool equal = a.ragged_rank() == b.ragged_rank();
  for (int i = 0; equal && i < a.ragged_rank(); ++i) {
    const Tensor& x = a.nested_row_splits()[static_cast<std::size_t>(i)];
    const Tensor& y = b.nested_row_splits()[static_cast<std::size_t>(i)];
    if (x.is_same(y) || x.is_symbolic() || y.is_symbolic()) continue;
    equal = x.shape() == y.shape() && bool(reduce_all(cast(x, int64) == cast(y, int64)));
  }
  if (!equal) {
    throw InvalidArgumentError(
        cat("Ragged tensors of different row lengths have no elements that "
            "correspond: ",
            a.shape(), " and ", b.shape(), "."));
  }
}

}  // namespace

#define TANDEM_RAGGED_OPERATOR(OPERATOR)                                         \
  RaggedTensor operator OPERATOR(const RaggedTensor& a, const RaggedTensor& b) { \
    require_equal_rows(a, b);                                                    \
    return a.with_flat_values(a.flat_values() OPERATOR b.flat_values());         \
  }                                                                              \
  RaggedTensor operator OPERATOR(const RaggedTensor& a, const Operand& b) {      \
    return a.with_flat_values(a.flat_values() OPERATOR b);                       \
  }                                                                              \
  RaggedTensor operator OPERATOR(const Operand& a, const RaggedTensor& b) {      \
    return b.with_flat_values(a OPERATOR b.flat_values());                       \
  }
TANDEM_RAGGED_OPERATOR(+)
TANDEM_RAGGED_OPERATOR(-)
TANDEM_RAGGED_OPERATOR(*)
TANDEM_RAGGED_OPERATOR(/)
#undef TANDEM_RAGGED_OPERATOR

}  // namespace tandem
