#pragma once

#include <cstdint>
#include <string>

#include "tandem/keras/regularizers.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Throws InvalidArgumentError "Dense: units must be positive, got -1." unless value > 0.
void require_positive(const std::string& who, const std::string& what, std::int64_t value);

/// Throws InvalidArgumentError unless low <= value <= high.
void require_range(const std::string& who, const std::string& what, double value, double low,
                   double high);

/// Throws InvalidArgumentError unless 0 <= value < 1: a share of values to drop.
void require_rate(const std::string& who, const std::string& what, double value);

/// A regularizer of a layer's result, averaged over the batch. Undefined if there is none.
Tensor activity_penalty(const Regularizer& regularizer, const Tensor& output);

}  // namespace tandem::keras::internal
