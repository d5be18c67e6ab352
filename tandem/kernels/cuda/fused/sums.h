#pragma once

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// Writes sum number `sum` of `num_sums`: for each column the sum over the pieces, partial[(piece *
/// num_sums + sum) * columns + column], divided. `partial` has doubles if `out` has, else floats.
void finish_sum(const void* partial, const TensorView& out, std::int64_t columns,
                std::int64_t pieces, std::int64_t num_sums, std::int64_t sum, double divisor);

}  // namespace tandem::cuda
