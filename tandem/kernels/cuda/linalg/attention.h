#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/kernels/cuda/support/device_code.h"
#include "tandem/kernels/cuda/support/kernel_call.h"
#include "tandem/kernels/shared/attention_per_axis.h"

// What _FusedAttention computes, as the kernels that can do it see it.

namespace tandem::cuda {

enum class AttentionStepKind : int { kSoftmax, kMul, kDivide, kAdd, kSub, kSelect, kMask };

/// Something that is done to the scores; kSelect and kMask keep them where `keep` is true.
/// Elsewhere kMask has the lowest number, and zero after the softmax.
struct AttentionStep {
  AttentionStepKind kind = AttentionStepKind::kSoftmax;
  const void* values = nullptr;  ///< of the query's type
  const bool* keep = nullptr;
  AttentionPerAxis values_at, keep_at;
};

/// A plain value: it goes to the GPU as an argument.
struct Attention {
  static constexpr int kMaxSteps = 12;

  AttentionPerAxis sizes;  // of each axis
  AttentionPerAxis query_at, key_at, value_at, output_at;
  const void *query = nullptr, *key = nullptr, *value = nullptr;
  void* output = nullptr;
  float scale = 1;                 // what scores are multiplied by first
  int num_steps = 0, softmax = 0;  // the softmax' number
  AttentionStep steps[kMaxSteps];
};

TANDEM_DEVICE std::int64_t at(const AttentionPerAxis& step, std::int64_t b, std::int64_t n,
                              std::int64_t t, std::int64_t s) {
  return b * step.b + n * step.n + t * step.t + s * step.s;
}

/// Has NVIDIA's library compute it. False, and nothing is done, where that does not serve.
bool attend_by_library(const KernelCall& call, Type type, const Attention& attention);

}  // namespace tandem::cuda
