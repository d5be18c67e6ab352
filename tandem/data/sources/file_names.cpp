#include "tandem/data/file_names.h"

#include "tandem/core/error.h"

namespace tandem::data {

FileNames::FileNames(const Tensor& names) {
  if (names.dtype() != DType::kString || names.rank() > 1) {
    throw InvalidArgumentError(
        cat("The names of files must be a string tensor, a scalar or a vector, got ", names.dtype(),
            names.partial_shape(), "."));
  }
  const Array& strings = names.array();
  const auto* first = strings.data<std::string>();
  names_.assign(first, first + strings.num_elements());
}

}  // namespace tandem::data
