#pragma once

#include <cstdint>

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// Replaces n numbers in device memory by their exclusive prefix sums, and writes the sum of all
/// behind them: `numbers` has n + 1 elements.
void prefix_sum(std::int64_t* numbers, std::int64_t n);

}  // namespace tandem::cuda
