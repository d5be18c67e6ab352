#pragma once

#include "tandem/kernels/cuda/conv/convolution.h"
#include "tandem/kernels/cuda/linalg/epilogue.h"

namespace tandem::cuda {

/// Which of a convolution's three tensors is computed from the other two.
enum class ConvolutionPart : int { kForward, kInputGradient, kFilterGradient };

struct ConvolutionOperands {
  Type type = Type::kFloat;         ///< of all but the result of a fused convolution
  Type result_type = Type::kFloat;  ///< of y going forward
  void* x = nullptr;
  void* filter = nullptr;
  void* y = nullptr;  ///< or its gradient
};

/// Has NVIDIA's libraries compute a part of a convolution: cuBLASLt where it is a product of
/// matrices, else cuDNN. False, and nothing is done, where they do not serve.
bool convolve_by_library(const KernelCall& call, ConvolutionPart part, const Convolution& c,
                         const ConvolutionOperands& operands, const Epilogue& epilogue = {});

}  // namespace tandem::cuda
