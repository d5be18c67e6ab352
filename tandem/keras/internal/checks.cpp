#include "tandem/keras/internal/checks.h"

#include "tandem/core/error.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras::internal {

void require_positive(const std::string& who, const std::string& what, std::int64_t value) {
  if (value <= 0)
    throw InvalidArgumentError(cat(who, ": ", what, " must be positive, got ", value, "."));
}

void require_range(const std::string& who, const std::string& what, double value, double low,
                   double high) {
  if (!(value >= low && value <= high)) {
    throw InvalidArgumentError(
        cat(who, ": ", what, " must be from ", low, " to ", high, ", got ", value, "."));
  }
}

void require_rate(const std::string& who, const std::string& what, double value) {
  if (!(value >= 0 && value < 1)) {
    throw InvalidArgumentError(
        cat(who, ": ", what, " must be from 0 up to and without 1, got ", value, "."));
  }
}

Tensor activity_penalty(const Regularizer& regularizer, const Tensor& output) {
  if (!regularizer.defined()) return {};
  const Tensor batch = cast(reshape(slice(shape(output), {0}, {1}), {}), output.dtype());
  return regularizer(output) / batch;
}

}  // namespace tandem::keras::internal
