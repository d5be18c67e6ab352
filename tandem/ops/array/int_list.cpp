#include "tandem/ops/int_list.h"

#include <algorithm>
#include <limits>

#include "tandem/core/array.h"
#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"

namespace tandem {

IntList::IntList(std::initializer_list<Entry> entries) {
  if (entries.size() == 1 && entries.begin()->computed().defined() &&
      entries.begin()->computed().rank() != 0) {
    computed_ = entries.begin()->computed();
    return;
  }
  DType dtype = int32;
  for (const Entry& entry : entries) {
    const bool wide = entry.computed().defined()
                          ? entry.computed().dtype() == int64
                          : static_cast<std::int32_t>(entry.value()) != entry.value();
    if (wide) dtype = int64;
  }
  std::vector<Tensor> numbers;
  for (const Entry& entry : entries) {
    const Tensor& computed = entry.computed();
    if (!computed.defined()) {
      numbers.push_back(internal::int_scalar(entry.value(), dtype));
    } else if (!kIndexTypes.contains(computed.dtype()) || computed.rank() > 0) {
      throw InvalidArgumentError(cat("A size in a list must be an int32 or int64 scalar but is ",
                                     computed.dtype(), computed.partial_shape(), "."));
    } else {
      numbers.push_back(computed.dtype() == dtype ? computed : cast(computed, dtype));
    }
  }
  computed_ = stack(numbers);
}

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
