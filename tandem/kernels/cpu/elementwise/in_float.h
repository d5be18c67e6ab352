#pragma once

#include <cstdint>

#include "tandem/core/dtype.h"
#include "tandem/device/intra_op_pool.h"

// Whole arrays of half or bfloat16 to and from float, for kernels that compute in float.

namespace tandem::cpu {

void to_float(IntraOpPool& pool, DType from_type, const void* from, float* to, std::int64_t count);
void from_float(IntraOpPool& pool, const float* from, DType to_type, void* to, std::int64_t count);

}  // namespace tandem::cpu
