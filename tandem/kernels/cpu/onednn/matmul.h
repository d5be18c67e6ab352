#pragma once

#include <cstdint>

#include "tandem/core/dtype.h"

namespace tandem::cpu::onednn {

/// c[i] = turn(a[i]) turn(b[i]) for `batch` matrices, parts of larger ones maybe: a stride is the
/// number of elements from one row (as it lies in memory) to the next, a step that from one matrix
/// to the next, 0 for one matrix used throughout.
struct MatMul {
  DType dtype = DType::kFloat;  ///< float or bfloat16
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  std::int64_t a_step = 0, b_step = 0, c_step = 0;
};

// Both run on the calling thread. False, and nothing done, if the library has no implementation. No
// size is 0.

/// The library's matmul primitive, which reads the operands where they lie.
bool matmul(const MatMul& what, const void* a, const void* b, void* c);
/// The library's gemm, which brings parts of both operands into order before it multiplies; float
/// alone.
bool gemm(const MatMul& what, const void* a, const void* b, void* c);

/// Which of the two was faster where they were measured first; holds where nothing is measured.
bool gemm_is_assumed_faster(const MatMul& what);

}  // namespace tandem::cpu::onednn
