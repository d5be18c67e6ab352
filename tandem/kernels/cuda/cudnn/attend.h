#pragma once

#include <functional>

#include "tandem/kernels/cuda/cudnn/attention_graph.h"

namespace tandem::cuda {

/// softmax(scale query keyᵀ + bias) value for batches of heads, in half or bfloat16.
struct CudnnAttention {
  Type type = Type::kHalf;
  AttentionLayout query_layout, key_layout, value_layout, bias_layout, result_layout;
  const void* query = nullptr;
  const void* key = nullptr;
  const void* value = nullptr;
  const void* bias = nullptr;  ///< or none
  void* result = nullptr;
  float scale = 1;
};

/// Has cuDNN compute it in the running kernel's stream, behind what `prepare` launches, if it is
/// not empty. False, and `prepare` is not called, if cuDNN has no engine for it. Throws Failure.
bool attend_by_cudnn(const KernelCall& call, const CudnnAttention& job,
                     const std::function<void()>& prepare);

}  // namespace tandem::cuda
