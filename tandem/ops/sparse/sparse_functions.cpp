#include "tandem/ops/sparse_functions.h"

#include <algorithm>
#include <numeric>
#include <ostream>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::sparse {
namespace {

int rank_of(const SparseTensor& x, const char* what) {
  std::int64_t rank = x.dense_shape.dim(0);
  if (rank < 0) rank = x.indices.dim(1);
  if (rank >= 0) return static_cast<int>(rank);
  throw InvalidArgumentError(cat("td::sparse::", what, ": the rank must be known."));
}

int axis_of(std::int64_t axis, int rank, const char* what) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  throw InvalidArgumentError(
      cat("td::sparse::", what, ": axis ", axis, " is not one of ", rank, " axes."));
}

}  // namespace

namespace {

// "tf.Tensor([1 2], shape=(2,), dtype=int64)"
std::string printed(const Tensor& t) {
  std::string shape, dtype = dtype_name(t.dtype());
  if (!t.is_symbolic()) {
    for (int axis = 0; axis < t.rank(); ++axis) shape += cat(axis ? ", " : "", t.dim(axis));
    if (t.rank() == 1) shape += ",";
  }
  if (t.dtype() == float32) dtype = "float32";
  if (t.dtype() == float64) dtype = "float64";
  if (t.dtype() == float16) dtype = "float16";
  return t.is_symbolic() ? t.to_string()
                         : cat("tf.Tensor(", t, ", shape=(", shape, "), dtype=", dtype, ")");
}

}  // namespace

PartialShape SparseTensor::shape() const {
  if (const auto sizes = tandem::internal::known_ints(dense_shape)) return PartialShape(*sizes);
  const int rank = dense_shape.rank() == 1 ? static_cast<int>(dense_shape.dim(0)) : -1;
  return rank < 0 ? PartialShape::unknown() : PartialShape::unknown_of_rank(rank);
}

std::string SparseTensor::to_string() const {
  if (!indices.defined() || !values.defined() || !dense_shape.defined()) return "<undefined>";
  return cat("SparseTensor(indices=", printed(indices), ", values=", printed(values),
             ", dense_shape=", printed(dense_shape), ")");
}
std::ostream& operator<<(std::ostream& out, const SparseTensor& tensor) {
  return out << tensor.to_string();
}

SparseTensor transpose(const SparseTensor& x, const std::vector<std::int64_t>& perm) {
  std::vector<std::int64_t> order = perm;
  if (order.empty()) {
    for (int i = rank_of(x, "transpose") - 1; i >= 0; --i) order.push_back(i);
  }
  const Tensor axes = internal::int_vector(order, int32);
  return reorder({gather(x.indices, axes, 1), x.values, gather(x.dense_shape, axes)});
}

SparseTensor expand_dims(const SparseTensor& x, std::int64_t axis) {
  const int rank = rank_of(x, "expand_dims");
  const int at = axis_of(axis, rank + 1, "expand_dims");
  const Tensor column = zeros_like(x.indices[{ellipsis, Slice(0, 1)}]);
  return {tandem::concat({x.indices[{ellipsis, Slice(none, at)}], column,
                          x.indices[{ellipsis, Slice(at, none)}]},
                         1),
          x.values,
          tandem::concat({x.dense_shape[Slice(none, at)], tandem::ones({1}, int64),
                          x.dense_shape[Slice(at, none)]},
                         0)};
}

SparseTensor eye(std::int64_t rows, std::int64_t columns, DType dtype) {
  if (columns < 0) columns = rows;
  const std::int64_t n = std::min(rows, columns);
  const Tensor places = range(Tensor(std::int64_t{0}), Tensor(n), Tensor(std::int64_t{1}));
  return {tandem::stack({places, places}, 1), tandem::ones({n}, dtype),
          Tensor(std::vector<std::int64_t>{rows, columns})};
}

SparseTensor retain(const SparseTensor& x, const Tensor& to_retain) {
  return {boolean_mask(x.indices, to_retain), boolean_mask(x.values, to_retain), x.dense_shape};
}

SparseTensor reset_shape(const SparseTensor& x, const Tensor& new_shape) {
  if (!new_shape.defined()) return {x.indices, x.values, tandem::reduce_max(x.indices, 0) + 1};
  const Tensor wanted = cast(new_shape, int64);
  const Tensor fits = reduce_all(x.dense_shape <= wanted);
  if (!fits.is_symbolic() && !fits.item<bool>()) {
    throw InvalidArgumentError(cat("td::sparse::reset_shape: the new shape ", wanted.to_string(),
                                   " is smaller than ", x.dense_shape.to_string(), "."));
  }
  return {x.indices, x.values, wanted};
}

std::vector<SparseTensor> split(const SparseTensor& x, std::int64_t num_split, std::int64_t axis) {
  const int rank = rank_of(x, "split");
  const int at = axis_of(axis, rank, "split");
  const auto sizes = internal::known_ints(x.dense_shape);
  if (!sizes || num_split < 1) {
    throw InvalidArgumentError(
        cat("td::sparse::split: the shape must be known and the number of parts, ", num_split,
            ", positive."));
  }
  const std::int64_t size = (*sizes)[static_cast<std::size_t>(at)];
  std::vector<SparseTensor> parts;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < num_split; ++i) {
    const std::int64_t length = size / num_split + (i < size % num_split ? 1 : 0);
    std::vector<std::int64_t> start(sizes->size(), 0), count = *sizes;
    start[static_cast<std::size_t>(at)] = begin;
    count[static_cast<std::size_t>(at)] = length;
    parts.push_back(slice(x, start, count));
    begin += length;
  }
  return parts;
}

namespace {

// Both with the elements of either: zeros where one has none.
std::pair<SparseTensor, SparseTensor> united(const SparseTensor& a, const SparseTensor& b) {
  const auto as_zeros = [](const SparseTensor& x) {
    return SparseTensor{x.indices, zeros_like(x.values), x.dense_shape};
  };
  return {add(a, as_zeros(b)), add(as_zeros(a), b)};
}

}  // namespace

SparseTensor maximum(const SparseTensor& a, const SparseTensor& b) {
  const auto [x, y] = united(a, b);
  return {x.indices, tandem::maximum(x.values, y.values), x.dense_shape};
}
SparseTensor minimum(const SparseTensor& a, const SparseTensor& b) {
  const auto [x, y] = united(a, b);
  return {x.indices, tandem::minimum(x.values, y.values), x.dense_shape};
}

Tensor to_indicator(const SparseTensor& ids, std::int64_t vocab_size) {
  const int rank = rank_of(ids, "to_indicator");
  const Tensor leading = ids.indices[{ellipsis, Slice(none, rank - 1)}];
  const Tensor places =
      tandem::concat({leading, tandem::expand_dims(cast(ids.values, int64), 1)}, 1);
  const Tensor sizes = tandem::concat(
      {ids.dense_shape[Slice(none, rank - 1)], Tensor(std::vector<std::int64_t>{vocab_size})}, 0);
  return scatter_nd(places, ones_like(ids.values, int32), IntList(sizes)) > 0;
}

SparseTensor bincount(const Tensor& values, const Tensor& weights, std::int64_t minlength,
                      bool binary_output) {
  if (values.rank() < 1 || values.rank() > 2) {
    throw InvalidArgumentError(
        cat("td::sparse::bincount: values must be a vector or a matrix, but "
            "their shape is ",
            values.partial_shape(), "."));
  }
  const bool is_vector = values.rank() == 1;
  const Tensor rows = cast(is_vector ? tandem::expand_dims(values, 0) : values, int64);
  const Tensor largest = tandem::maximum(
      tandem::reduce_max(tandem::concat(
          {tandem::fill({1}, Tensor(std::int64_t{-1})), tandem::reshape(rows, {-1})}, 0)) +
          1,
      minlength);
  // Row by row: of each pair (row, value) how often it occurs.
  const Tensor count = shape(rows, int64)[0];
  const Tensor row = broadcast_to(
      tandem::expand_dims(range(Tensor(std::int64_t{0}), count, Tensor(std::int64_t{1})), 1),
      IntList(shape(rows)));
  const Tensor key = tandem::reshape(row * largest + rows, {-1});
  const DType type = weights.defined() ? weights.dtype() : int32;
  const Tensor amounts = weights.defined() ? tandem::reshape(weights, {-1}) : ones_like(key, int32);
  const Tensor cells = tandem::reshape(count * largest, {1});
  const Tensor places = tandem::expand_dims(key, 1);
  const Tensor how_often = scatter_nd(places, ones_like(key), IntList(cells));
  const Tensor sums =
      binary_output ? cast(how_often > 0, type) : scatter_nd(places, amounts, IntList(cells));
  const Tensor present = tandem::reshape(where(how_often > 0), {-1});
  const Tensor picked = gather(sums, present);
  if (is_vector) return {tandem::expand_dims(present, 1), picked, tandem::reshape(largest, {1})};
  return {tandem::stack({floordiv(present, largest), floormod(present, largest)}, 1), picked,
          tandem::stack({count, largest})};
}

namespace {

SparseTensor crossed(const std::vector<SparseTensor>& inputs, const char* op,
                     const std::vector<Tensor>& more, AttrMap attrs) {
  std::vector<Tensor> all;
  for (const SparseTensor& x : inputs) all.push_back(x.indices);
  for (const SparseTensor& x : inputs)
    all.push_back(is_integer(x.values.dtype()) ? cast(x.values, int64) : x.values);
  for (const SparseTensor& x : inputs) all.push_back(x.dense_shape);
  all.insert(all.end(), more.begin(), more.end());
  std::vector<DType> types;
  for (const SparseTensor& x : inputs)
    types.push_back(is_integer(x.values.dtype()) ? int64 : x.values.dtype());
  attrs.set("N", static_cast<std::int64_t>(inputs.size()));
  attrs.set("sparse_types", types);
  attrs.set("dense_types", std::vector<DType>{});
  auto out = raw_op(op, all, attrs);
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

}  // namespace

SparseTensor cross(const std::vector<SparseTensor>& inputs, StringView separator) {
  return crossed(inputs, "SparseCrossV2", {Tensor(std::string(separator))}, {});
}
SparseTensor cross_hashed(const std::vector<SparseTensor>& inputs, std::int64_t num_buckets,
                          std::int64_t hash_key) {
  const bool any_integer = std::any_of(inputs.begin(), inputs.end(), [](const SparseTensor& x) {
    return is_integer(x.values.dtype());
  });
  return crossed(inputs, "SparseCross", {},
                 {{"hashed_output", true},
                  {"num_buckets", num_buckets},
                  {"hash_key", hash_key},
                  {"out_type", int64},
                  {"internal_type", any_integer ? int64 : string}});
}

SparseTensor sampled_addmm(const SparseTensor& x, const Tensor& dense_a, const Tensor& dense_b,
                           double beta, double alpha) {
  // Only the products at the places of x: rows of a with columns of b.
  const int rank = rank_of(x, "sampled_addmm");
  const Tensor batch = x.indices[{ellipsis, Slice(none, rank - 2)}];
  const Tensor row = x.indices[{ellipsis, Slice(rank - 2, rank - 1)}];
  const Tensor column = x.indices[{ellipsis, Slice(rank - 1, none)}];
  const Tensor a = gather_nd(dense_a, tandem::concat({batch, row}, 1));
  const Tensor b = gather_nd(matrix_transpose(dense_b), tandem::concat({batch, column}, 1));
  return {x.indices, x.values * beta + tandem::reduce_sum(a * b, -1) * alpha, x.dense_shape};
}

}  // namespace tandem::sparse
