#pragma once

#include "tandem/core/dtype.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/norm/channels.h"

namespace tandem::cpu {

/// The mean and the (biased) variance of each channel of `x`, which is float, half or bfloat16, in
/// one pass. Sums are of deviations from a value near by, so that both stay exact far from zero.
/// The bits do not depend on the number of threads. `x` has an element at least.
void batch_moments(KernelContext& c, const Channels& d, DType dtype, const void* x, float* mean,
                   float* variance);

}  // namespace tandem::cpu
