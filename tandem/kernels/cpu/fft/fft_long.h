#pragma once

#include <complex>
#include <cstdint>

#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// True if a line of n elements, one of `lines`, is worth the work of all vectors' lanes and all
/// threads.
bool fft_is_long(std::int64_t n, std::int64_t lines);

/// Transforms one line in place.
void fft_long(KernelContext& c, std::int64_t n, std::complex<double>* line);

}  // namespace tandem::cpu
