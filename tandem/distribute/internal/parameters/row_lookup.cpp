#include "tandem/distribute/internal/parameters/row_lookup.h"

#include <algorithm>
#include <cstring>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/parameters/gather_rows.h"

namespace tandem::distribute {
namespace {

std::vector<std::int64_t> elements(const Array& index) {
  if (index.dtype() == DType::kInt64) {
    const auto values = index.values<std::int64_t>();
    return {values.begin(), values.end()};
  }
  if (index.dtype() != DType::kInt32)
    throw InvalidArgumentError(
        cat("Rows are named by int32 or int64, not by ", index.dtype(), "."));
  const auto values = index.values<std::int32_t>();
  return {values.begin(), values.end()};
}

template <class T>
void add_rows(const Array& gradients, const Array& positions, Array& sums, std::int64_t size) {
  const T* from = gradients.data<T>();
  for (const std::int64_t position : positions.values<std::int64_t>()) {
    T* to = sums.data<T>() + position * size;
    for (std::int64_t i = 0; i < size; ++i) to[i] += *from++;
  }
}

}  // namespace

RowLookup::RowLookup(const Array& index)
    : shape_(index.shape()), positions_(DType::kInt64, Shape{index.num_elements()}) {
  const std::vector<std::int64_t> all = elements(index);
  rows_ = all;
  std::sort(rows_.begin(), rows_.end());
  rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
  auto* position = positions_.data<std::int64_t>();
  for (const std::int64_t row : all)
    *position++ = std::lower_bound(rows_.begin(), rows_.end(), row) - rows_.begin();
}

Array RowLookup::rows_of(std::int64_t begin, std::int64_t end) const {
  const auto first = std::lower_bound(rows_.begin(), rows_.end(), begin);
  const auto last = std::lower_bound(first, rows_.end(), end);
  Array rows(DType::kInt64, Shape{last - first});
  std::transform(first, last, rows.data<std::int64_t>(),
                 [begin](std::int64_t row) { return row - begin; });
  return rows;
}

Array RowLookup::expand(const std::vector<Array>& parts, const std::string& name) const {
  std::vector<std::int64_t> dims(parts.front().shape().dims().begin(),
                                 parts.front().shape().dims().end());
  dims[0] = 0;
  for (const Array& part : parts) dims[0] += part.dim(0);
  if (dims[0] != static_cast<std::int64_t>(rows_.size())) {
    throw InvalidArgumentError(cat("The step looks up rows from ", rows_.front(), " to ",
                                   rows_.back(), " for ", name, ", which are not all there."));
  }
  Array table(parts.front().dtype(), Shape(dims));
  auto* to = static_cast<char*>(table.raw_data());
  for (const Array& part : parts) {
    if (part.num_bytes() > 0) std::memcpy(to, part.raw_data(), part.num_bytes());
    to += part.num_bytes();
  }
  std::vector<std::int64_t> result(shape_.dims().begin(), shape_.dims().end());
  result.insert(result.end(), dims.begin() + 1, dims.end());
  return gather_rows(table, positions_, name).reshape(Shape(result));
}

Array RowLookup::sum(const Array& gradients) const {
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(rows_.size())};
  for (int axis = shape_.rank(); axis < gradients.rank(); ++axis)
    dims.push_back(gradients.dim(axis));
  Array sums = Array::zeros(gradients.dtype(), Shape(dims));
  const std::int64_t size =
      sums.num_elements() / std::max<std::int64_t>(static_cast<std::int64_t>(rows_.size()), 1);
  if (gradients.dtype() == DType::kDouble) {
    add_rows<double>(gradients, positions_, sums, size);
  } else {
    add_rows<float>(gradients, positions_, sums, size);
  }
  return sums;
}

}  // namespace tandem::distribute
