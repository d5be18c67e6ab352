#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>

#include "tandem/kernels/cuda/cudnn/plan_chooser.h"

namespace tandem::cuda {

/// Batches, heads, rows and columns of matrices. An operand that is repeated along batches or heads
/// has one of them.
struct AttentionLayout {
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1};
  std::array<std::int64_t, 4> strides{1, 1, 1, 1};

  auto operator<=>(const AttentionLayout&) const = default;
};

/// All that the choice of an engine for softmax(scale query keyᵀ + bias) value depends on.
struct AttentionProblem {
  Type type;
  AttentionLayout query, key, value, bias, result;
  bool has_bias;
  float scale;
  bool deterministic;
  std::int64_t alignment;  ///< in bytes, of all operands

  auto operator<=>(const AttentionProblem&) const = default;
  /// Named "attention half 2x8x512x64 …".
  PlanRequest request() const;
};

/// In the form that cuDNN's engines for attention know, whose scores are in no memory. Operands are
/// query, key, value, where the problem has it the bias, and the result. Throws Failure.
std::shared_ptr<const OperationGraph> graph_of(cudnnHandle_t handle,
                                               const AttentionProblem& problem);

}  // namespace tandem::cuda
