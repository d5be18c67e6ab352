#pragma once

#include <cstdint>

#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// What is done to each element of a product after its bias is added.
enum class Activation : std::int64_t { kNone, kRelu, kRelu6, kElu, kLeakyRelu, kTanh, kSigmoid };

namespace onednn {

/// c = activation(turn(a) turn(b) + bias (+ c, if `adds`)), in float; `bias` has n elements.
struct FusedMatMul {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool adds = false;
  Activation activation = Activation::kNone;
  float alpha = 0;  ///< LeakyRelu's slope below zero
};

/// Split among the pool's threads by rows. No size is 0.
void fused_matmul(KernelContext& context, const FusedMatMul& what, const float* a, const float* b,
                  const float* bias, float* c);

}  // namespace onednn
}  // namespace tandem::cpu
