#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>

#include "tandem/kernels/cuda/cudnn/convolve.h"
#include "tandem/kernels/cuda/cudnn/plan_chooser.h"

namespace tandem::cuda {

/// All that the choice of an engine for a convolution depends on, on one kind of GPU.
struct ConvolutionProblem {
  ConvolutionPart part;
  Type type;
  bool channels_last, volumes, has_bias, has_addend;
  Activation activation;
  bool tensor_float_32, deterministic;
  std::int64_t batch, in, out, filter_in;
  std::array<std::int64_t, 3> x, y, window, stride, dilation, pad;
  std::int64_t alignment;  ///< in bytes, of all operands

  auto operator<=>(const ConvolutionProblem&) const = default;
  /// Named "convolution forward float 32x56x56x64 …".
  PlanRequest request() const;
};

/// The convolution and what follows it. Operands are x, the filter, where the problem has
/// them bias and addend, and y. Throws Failure.
std::shared_ptr<const OperationGraph> graph_of(cudnnHandle_t handle,
                                               const ConvolutionProblem& problem);

}  // namespace tandem::cuda
