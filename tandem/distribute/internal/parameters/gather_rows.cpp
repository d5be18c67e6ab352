#include "tandem/distribute/internal/parameters/gather_rows.h"

#include <cstring>
#include <vector>

#include "tandem/core/error.h"

namespace tandem::distribute {

void check_row_index(const Array& value, const Array& index, const std::string& name) {
  if (value.rank() == 0 || index.dtype() != DType::kInt64 || index.rank() != 1) {
    throw InvalidArgumentError(cat("Rows of '", name, "', which is ", value.dtype(), value.shape(),
                                   ", are named by a vector of int64, not by ", index.dtype(),
                                   index.shape(), "."));
  }
  for (const std::int64_t row : index.values<std::int64_t>()) {
    if (row >= 0 && row < value.dim(0)) continue;
    throw InvalidArgumentError(
        cat("Row ", row, " of '", name, "' does not exist: it has ", value.dim(0), "."));
  }
}

Array gather_rows(const Array& value, const Array& index, const std::string& name) {
  check_row_index(value, index, name);
  std::vector<std::int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
  dims[0] = index.num_elements();
  Array rows(value.dtype(), Shape(dims));
  const std::size_t size =
      value.num_bytes() / static_cast<std::size_t>(value.dim(0) ? value.dim(0) : 1);
  const auto* from = static_cast<const char*>(value.raw_data());
  auto* to = static_cast<char*>(rows.raw_data());
  for (const std::int64_t row : index.values<std::int64_t>()) {
    std::memcpy(to, from + static_cast<std::size_t>(row) * size, size);
    to += size;
  }
  return rows;
}

}  // namespace tandem::distribute
