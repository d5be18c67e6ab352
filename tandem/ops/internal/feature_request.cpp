#include "tandem/ops/internal/feature_request.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"

namespace tandem::internal {
namespace {

void check_dtype(const std::string& key, DType dtype) {
  if (dtype == DType::kFloat || dtype == DType::kInt64 || dtype == DType::kString) return;
  throw InvalidArgumentError(cat("Feature '", key, "' has dtype ", dtype,
                                 ", but Examples hold float, int64 and string only: ask for one of "
                                 "these and cast."));
}

// Literals are int32 or float: "default_value = 0" is meant as the feature's dtype.
Array checked(const std::string& key, const Tensor& value, DType dtype) {
  const Array& array = value.array();
  if (array.dtype() == dtype) return array;
  if (dtype == DType::kInt64 && array.dtype() == DType::kInt32) {
    Array wide(dtype, array.shape());
    const auto from = array.values<std::int32_t>();
    std::copy(from.begin(), from.end(), wide.data<std::int64_t>());
    return wide;
  }
  if (dtype == DType::kFloat && array.dtype() == DType::kInt32) {
    Array real(dtype, array.shape());
    const auto from = array.values<std::int32_t>();
    std::copy(from.begin(), from.end(), real.data<float>());
    return real;
  }
  throw InvalidArgumentError(cat("The default_value of feature '", key, "' has dtype ",
                                 array.dtype(), ", but the feature ", dtype, "."));
}

Array repeated(const std::string& key, const Array& value, const Shape& shape) {
  if (value.num_elements() != 1) {
    throw InvalidArgumentError(cat("The default_value of feature '", key, "' has shape ",
                                   value.shape(), ", but the feature ", shape, "."));
  }
  Array whole(value.dtype(), shape);
  const auto fill = [&](auto type) {
    using T = decltype(type);
    std::fill_n(whole.data<T>(), shape.num_elements(), value.data<T>()[0]);
  };
  if (value.dtype() == DType::kFloat) {
    fill(float{});
  } else if (value.dtype() == DType::kInt64) {
    fill(std::int64_t{});
  } else {
    fill(std::string{});
  }
  return whole;
}

}  // namespace

void FeatureRequest::add_dense(const std::string& key, DType dtype, PartialShape shape) {
  check_dtype(key, dtype);
  dense.push_back(key);
  dense_types.push_back(dtype);
  dense_shapes.push_back(std::move(shape));
}

void FeatureRequest::add(const std::string& key, const io::FixedLenFeature& f) {
  add_dense(key, f.dtype, PartialShape(f.shape));
  // A default has the feature's shape or is one value for it all.
  if (!f.default_value) {
    defaults.emplace_back(Array(f.dtype, Shape{0}));
    return;
  }
  const Array given = checked(key, *f.default_value, f.dtype);
  const Shape shape(f.shape);
  Array whole = given.num_elements() == shape.num_elements() ? given.reshape(shape)
                                                             : repeated(key, given, shape);
  defaults.emplace_back(std::move(whole));
}

void FeatureRequest::add(const std::string& key, const io::FixedLenSequenceFeature& f) {
  std::vector<std::int64_t> dims = f.shape;
  dims.insert(dims.begin(), PartialShape::kUnknown);
  add_dense(key, f.dtype, PartialShape(std::move(dims)));
  defaults.emplace_back(f.default_value ? checked(key, *f.default_value, f.dtype)
                                        : Array::zeros(f.dtype, Shape{}));
}

void FeatureRequest::add(const std::string& key, const io::VarLenFeature& f) {
  check_dtype(key, f.dtype);
  if (only_merged.erase(key) > 0) return;  // a SparseFeature asked for it before
  sparse.push_back(key);
  sparse_types.push_back(f.dtype);
}

void FeatureRequest::add(const std::string& key, const io::RaggedFeature& f) {
  check_dtype(key, f.dtype);
  if (f.row_splits_dtype != DType::kInt32 && f.row_splits_dtype != DType::kInt64) {
    throw InvalidArgumentError(cat("Feature '", key, "' has row_splits_dtype ", f.row_splits_dtype,
                                   ", but it must be int32 or int64."));
  }
  ragged.push_back(key);
  ragged_types.push_back(f.dtype);
  split_types.push_back(f.row_splits_dtype);
}

void FeatureRequest::add(const std::string& key, const io::SparseFeature& f) {
  if (f.index_key.empty() || f.index_key.size() != f.size.size()) {
    throw InvalidArgumentError(cat("SparseFeature '", key, "' has ", f.index_key.size(),
                                   " index keys and ", f.size.size(),
                                   " sizes; one of each for every axis, and one at least."));
  }
  const auto ask = [&](const std::string& name, DType dtype) {
    for (std::size_t i = 0; i < sparse.size(); ++i) {
      if (sparse[i] != name) continue;
      if (sparse_types[i] == dtype) return;
      throw InvalidArgumentError(cat("SparseFeature '", key, "' asks for '", name, "' as ", dtype,
                                     ", but it is asked for as ", sparse_types[i], " too."));
    }
    add(name, io::VarLenFeature{dtype});
    // Unless the spec asks for it by itself, it is no part of the result.
    only_merged.insert(name);
  };
  for (const std::string& name : f.index_key) ask(name, DType::kInt64);
  ask(f.value_key, f.dtype);
  merged.emplace(key, f);
}

namespace {

// The values with further columns of indices, one for each index feature.
sparse::SparseTensor merge(const io::SparseFeature& f,
                           const std::map<std::string, sparse::SparseTensor>& found) {
  const sparse::SparseTensor& values = found.at(f.value_key);
  const std::int64_t columns = values.indices.dim(-1);
  if (columns < 0)
    throw InvalidArgumentError("SparseFeature: the rank of the examples must be known.");
  // Without the last column, which counts the values of an example.
  std::vector<Tensor> parts{slice(values.indices, {0, 0}, {-1, columns - 1})};
  std::vector<Tensor> sizes{slice(values.dense_shape, {0}, {columns - 1})};
  for (std::size_t i = 0; i < f.index_key.size(); ++i) {
    parts.push_back(expand_dims(found.at(f.index_key[i]).values, 1));
    sizes.emplace_back(std::vector<std::int64_t>{f.size[i]});
  }
  const sparse::SparseTensor joined{concat(parts, 1), values.values, concat(sizes, 0)};
  return f.already_sorted ? joined : sparse::reorder(joined);
}

}  // namespace

io::ParsedExamples FeatureRequest::take(const std::vector<Tensor>& outputs, bool single) const {
  io::ParsedExamples found;
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    found.sparse[sparse[i]] = {outputs[i], outputs[sparse.size() + i],
                               outputs[2 * sparse.size() + i]};
  }
  std::map<std::string, sparse::SparseTensor> made;
  for (const auto& [key, feature] : merged) made.emplace(key, merge(feature, found.sparse));
  for (const std::string& key : only_merged) found.sparse.erase(key);
  for (auto& [key, tensor] : made) found.sparse.insert_or_assign(key, std::move(tensor));
  std::size_t at = 3 * sparse.size();
  for (const std::string& key : dense) found.dense[key] = outputs[at++];
  for (const std::string& key : ragged) {
    found.ragged[key] = {outputs[at], single ? Tensor() : outputs[at + ragged.size()]};
    ++at;
  }
  return found;
}

}  // namespace tandem::internal
