#include "tandem/ops/internal/feature_request.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tandem/core/error.h"

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

io::ParsedExamples FeatureRequest::take(const std::vector<Tensor>& outputs, bool single) const {
  io::ParsedExamples found;
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    found.sparse[sparse[i]] = {outputs[i], outputs[sparse.size() + i],
                               outputs[2 * sparse.size() + i]};
  }
  std::size_t at = 3 * sparse.size();
  for (const std::string& key : dense) found.dense[key] = outputs[at++];
  for (const std::string& key : ragged) {
    found.ragged[key] = {outputs[at], single ? Tensor() : outputs[at + ragged.size()]};
    ++at;
  }
  return found;
}

}  // namespace tandem::internal
