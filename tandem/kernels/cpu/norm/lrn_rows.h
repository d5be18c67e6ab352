#pragma once

#include <cstdint>

// Rows of floats of local response normalisation, compiled for each kind of processor.

namespace tandem::cpu {

/// out[i] = padded[i] + … + padded[i + width - 1]
void window_sums(const float* padded, std::int64_t width, float* out, std::int64_t n);

/// out[i] = x[i] to the power of -beta.
void negative_powers(const float* x, float beta, float* out, std::int64_t n);

}  // namespace tandem::cpu
