#pragma once

#include <cstdint>

#include "tandem/core/half.h"

namespace tandem::cpu {

/// c = turn(a) turn(b) for matrices of half or bfloat16 that may be parts of larger ones; a stride
/// is the number of elements from one row, as it lies in memory, to the next. No size is 0. `c`
/// overlaps neither a nor b.
template <class T>
struct Float16Product {
  std::int64_t m = 0;  ///< rows of c
  std::int64_t n = 0;  ///< columns of c
  std::int64_t k = 0;  ///< length of the sums
  const T* a = nullptr;
  std::int64_t a_stride = 0;
  bool transpose_a = false;
  const T* b = nullptr;
  std::int64_t b_stride = 0;
  bool transpose_b = false;
  T* c = nullptr;
  std::int64_t c_stride = 0;
};

/// Becomes float block by block, in a core's caches, while it is put into the order of the
/// vectors; sums are of float and rounded once. On the calling thread, compiled for each kind of
/// processor. Sums are in the same order for every row and column, whatever m and n are.
void multiply_in_blocks(const Float16Product<Half>& product);
void multiply_in_blocks(const Float16Product<BFloat16>& product);

}  // namespace tandem::cpu
