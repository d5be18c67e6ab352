#pragma once

// What GPUs of the stand-in do with memory, beside kernels.

#include <cstddef>

#include "tests/plugin/cuda_stand_in.h"

namespace stand_in {

/// A copy, on the thread of its stream. In builds with AddressSanitizer one that reaches beyond
/// what Tandem has handed out is named before the report of that.
void transfer(StandInActivity::Kind kind, void* to, const void* from, std::size_t bytes);
/// A memset, likewise.
void fill(void* to, unsigned char value, std::size_t bytes);

}  // namespace stand_in
