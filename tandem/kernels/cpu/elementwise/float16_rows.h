#pragma once

#include <cstdint>

#include "tandem/core/half.h"

// Rows of 16-bit floats to and from float, which is what kernels compute them in. Rounds to the
// nearest, halves to even. The ranges do not overlap.

namespace tandem::cpu {

void to_floats(const Half* from, float* to, std::int64_t n);
void to_floats(const BFloat16* from, float* to, std::int64_t n);
void from_floats(const float* from, Half* to, std::int64_t n);
void from_floats(const float* from, BFloat16* to, std::int64_t n);

}  // namespace tandem::cpu
