#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/kernels/cuda/support/device_code.h"
#include "tandem/kernels/cuda/support/kernel_call.h"

// What _FusedAttention computes, as the kernels that can do it see it.

namespace tandem::cuda {

/// Elements between neighbours along each axis, by the letters of the attribute `axes`: batches B
/// and N, queries T, keys S, D what a query and a key are multiplied along, E a value's elements. 0
/// where there is only one.
struct AttentionAxes {
  std::int64_t b = 0, n = 0, t = 0, s = 0, d = 0, e = 0;

  std::int64_t& of(char letter) {
    switch (letter) {
      case 'B': return b;
      case 'N': return n;
      case 'T': return t;
      case 'S': return s;
      case 'D': return d;
      default: return e;
    }
  }
};

enum class AttentionStepKind : int { kSoftmax, kMul, kDivide, kAdd, kSub, kSelect, kMask };

/// Something that is done to the scores; kSelect and kMask keep them where `keep` is true.
/// Elsewhere kMask has the lowest number, and zero after the softmax.
struct AttentionStep {
  AttentionStepKind kind = AttentionStepKind::kSoftmax;
  const void* values = nullptr;  ///< of the query's type
  const bool* keep = nullptr;
  AttentionAxes values_at, keep_at;
};

/// A plain value: it goes to the GPU as an argument.
struct Attention {
  static constexpr int kMaxSteps = 12;

  AttentionAxes sizes;  // of each axis
  AttentionAxes query_at, key_at, value_at, output_at;
  const void *query = nullptr, *key = nullptr, *value = nullptr;
  void* output = nullptr;
  float scale = 1;                 // what scores are multiplied by first
  int num_steps = 0, softmax = 0;  // the softmax' number
  AttentionStep steps[kMaxSteps];
};

TANDEM_DEVICE std::int64_t at(const AttentionAxes& step, std::int64_t b, std::int64_t n,
                              std::int64_t t, std::int64_t s) {
  return b * step.b + n * step.n + t * step.t + s * step.s;
}

/// Has NVIDIA's library compute it. False, and nothing is done, where that does not serve.
bool attend_by_library(const KernelCall& call, Type type, const Attention& attention);

}  // namespace tandem::cuda
