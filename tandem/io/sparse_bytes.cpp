#include "tandem/io/sparse_bytes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/example.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"

namespace tandem::io {
namespace {

using sparse::SparseTensor;

std::string bytes_of(const Tensor& tensor) { return serialize_tensor(tensor).item<std::string>(); }

// Rows begin … end - 1 of a tensor.
Tensor rows(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
  return tensor[Slice(begin, end)];
}

}  // namespace

Tensor serialize_sparse(const SparseTensor& x) {
  return Tensor::from(
      std::vector<std::string>{bytes_of(x.indices), bytes_of(x.values), bytes_of(x.dense_shape)});
}

Tensor serialize_many_sparse(const SparseTensor& x) {
  const auto shape = x.dense_shape.to_vector<std::int64_t>();
  if (shape.size() < 2) {
    throw InvalidArgumentError(
        cat("Rank of input SparseTensor should be > 1, but saw rank: ", shape.size()));
  }
  const auto indices = x.indices.data<std::int64_t>();
  const std::size_t rank = shape.size(), count = indices.size() / rank;
  const Tensor inner_shape =
      Tensor::from(std::vector<std::int64_t>(shape.begin() + 1, shape.end()));
  std::vector<std::string> out;
  std::size_t at = 0;
  for (std::int64_t entry = 0; entry < shape[0]; ++entry) {
    const std::size_t begin = at;
    std::vector<std::int64_t> inner;
    for (; at < count && indices[at * rank] == entry; ++at) {
      inner.insert(inner.end(), indices.begin() + static_cast<std::ptrdiff_t>(at * rank + 1),
                   indices.begin() + static_cast<std::ptrdiff_t>((at + 1) * rank));
    }
    const auto found = static_cast<std::int64_t>(at - begin);
    out.push_back(bytes_of(Tensor::from(inner, {found, static_cast<std::int64_t>(rank) - 1})));
    out.push_back(
        bytes_of(rows(x.values, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(at))));
    out.push_back(bytes_of(inner_shape));
  }
  if (at != count) {
    throw InvalidArgumentError(cat("td::io::serialize_many_sparse: index ", at,
                                   " lies outside of the shape or before "
                                   "those before it; td::sparse::reorder puts them in order."));
  }
  return Tensor::from(out, {shape[0], 3});
}

SparseTensor deserialize_many_sparse(const Tensor& serialized_sparse, DType dtype,
                                     std::optional<std::int64_t> rank) {
  const Shape& given = serialized_sparse.shape();
  if (given.rank() != 2 || given.dim(1) != 3) {
    throw InvalidArgumentError(
        cat("Serialized sparse should have 3 columns and two axes, but its shape is ", given));
  }
  const auto strings = serialized_sparse.data<std::string>();
  std::vector<std::int64_t> largest;
  if (rank) largest.assign(static_cast<std::size_t>(*rank), 0);
  std::vector<std::int64_t> indices;
  std::vector<Tensor> values;
  for (std::int64_t entry = 0; entry < given.dim(0); ++entry) {
    const auto* row = &strings[static_cast<std::size_t>(3 * entry)];
    const Tensor places = parse_tensor(Tensor(row[0]), int64);
    const Tensor value = parse_tensor(Tensor(row[1]), dtype);
    const Tensor sizes = parse_tensor(Tensor(row[2]), int64);
    const auto shape = sizes.to_vector<std::int64_t>();
    if (entry == 0 && !rank) largest.assign(shape.size(), 0);
    const auto inner = static_cast<std::int64_t>(shape.size());
    if (shape.size() != largest.size() || places.rank() != 2 || places.dim(1) != inner ||
        value.rank() != 1 || value.dim(0) != places.dim(0)) {
      throw InvalidArgumentError(cat("Serialized sparse tensor ", entry, " has indices ",
                                     places.partial_shape(), ", values ", value.partial_shape(),
                                     " and rank ", shape.size(), ", which do not fit rank ",
                                     largest.size()));
    }
    for (std::size_t i = 0; i < shape.size(); ++i) largest[i] = std::max(largest[i], shape[i]);
    const auto flat = places.data<std::int64_t>();
    for (std::int64_t i = 0; i < places.dim(0); ++i) {
      indices.push_back(entry);
      for (std::int64_t k = 0; k < inner; ++k)
        indices.push_back(flat[static_cast<std::size_t>(i * inner + k)]);
    }
    values.push_back(value);
  }
  const auto width = static_cast<std::int64_t>(largest.size()) + 1;
  largest.insert(largest.begin(), given.dim(0));
  const auto count = static_cast<std::int64_t>(indices.size()) / width;
  Tensor joined = values.empty()       ? Tensor(Array::zeros(dtype, Shape{0}))
                  : values.size() == 1 ? values[0]
                                       : concat(values, 0);
  return {Tensor::from(indices, {count, width}), std::move(joined), Tensor::from(largest)};
}

}  // namespace tandem::io
