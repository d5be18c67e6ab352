#pragma once

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// Output 0: the slices of `params` along `axis` that input 1 numbers.
void gather(const KernelCall& call, const TensorView& params, std::int64_t axis,
            std::int64_t batch_dims);
/// Output 0: the slices of `params` that the index tuples in input 1 name.
void gather_nd(const KernelCall& call, const TensorView& params);

}  // namespace tandem::cuda
