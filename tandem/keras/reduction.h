#pragma once

#include <cstdint>
#include <string>

namespace tandem::keras {

/// How a loss makes one number of the values of the examples. Weighted values count in the sum;
/// kSumOverBatchSize and kMean divide by the number of values, kMeanWithSampleWeight by the sum of
/// the weights.
enum class Reduction : std::uint8_t {
  kSumOverBatchSize,
  kSum,
  kMean,
  kMeanWithSampleWeight,
  kNone,
};

}  // namespace tandem::keras
