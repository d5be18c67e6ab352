#pragma once

#include <cstdint>

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// Replaces the n numbers by the sums of those in front of each, and writes the sum of all behind
/// them: `numbers` has n + 1 elements. In device memory.
void prefix_sum(std::int64_t* numbers, std::int64_t n);

}  // namespace tandem::cuda
