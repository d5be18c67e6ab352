#include "tandem/core/error.h"
#include "tandem/data/names.h"

namespace tandem::data {

std::int64_t size(const Dataset& dataset) {
  const std::int64_t count = dataset.cardinality();
  if (count >= 0) return count;
  throw InvalidArgumentError(
      count == kInfinite ? "The dataset has no end, so it has no size. take(n) cuts it."
                         : "The size of the dataset cannot be determined without iterating it; "
                           "assert_cardinality(n) states it.");
}

}  // namespace tandem::data
