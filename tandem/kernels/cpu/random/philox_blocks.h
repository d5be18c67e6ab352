#pragma once

#include <cstdint>

#include "tandem/kernels/cpu/random/philox.h"

namespace tandem::cpu {

/// The next `blocks` blocks of the stream, four numbers each, many at a time; the stream moves on.
void philox_blocks(Philox& stream, std::int64_t blocks, std::uint32_t* out);

/// Writes random floats from [0, 1), bit by bit what unit_float makes of each number.
void philox_unit_floats(Philox& stream, std::int64_t blocks, float* out);

}  // namespace tandem::cpu
