#include "tandem/ops/int_list.h"

#include <algorithm>
#include <limits>

#include "tandem/core/array.h"
#include "tandem/core/error.h"
#include "tandem/ops/internal/known.h"

namespace tandem {

std::optional<std::vector<std::int64_t>> IntList::known() const {
  if (!computed_.defined()) return values_;
  if (!kIndexTypes.contains(computed_.dtype())) {
    throw InvalidArgumentError(cat("A list of integers must be int32 or int64 but is ",
                                   computed_.dtype(), ". Use td::cast."));
  }
  return internal::known_ints(computed_);
}

Tensor IntList::tensor() const {
  if (computed_.defined()) return computed_;
  const bool small = std::all_of(values_.begin(), values_.end(), [](std::int64_t v) {
    return v >= std::numeric_limits<std::int32_t>::min() &&
           v <= std::numeric_limits<std::int32_t>::max();
  });
  return internal::int_vector(values_, small ? DType::kInt32 : DType::kInt64);
}

Tensor IntList::tensor(DType dtype) const {
  return computed_.defined() ? computed_ : internal::int_vector(values_, dtype);
}

}  // namespace tandem
