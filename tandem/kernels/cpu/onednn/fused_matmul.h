#pragma once

#include <cstdint>

#include "tandem/kernels/cpu/conv/epilogue.h"

namespace tandem::cpu::onednn {

/// turn(a) turn(b) of matrices of float, with an epilogue: c holds the addend, if there is one.
struct FusedMatMul {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  Epilogue epilogue;
};

/// Split among the pool's threads by rows or columns. No size is 0.
/// `b` is an array or one that _PackWeights made.
void fused_matmul(KernelContext& context, const FusedMatMul& what, const float* a, const Array& b,
                  float* c);

}  // namespace tandem::cpu::onednn
