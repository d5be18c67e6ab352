#pragma once

#include <functional>

#include "tandem/kernels/cuda/conv/library.h"

namespace tandem::cuda {

/// A part of a convolution as cuDNN computes it: the filter is [out, places, in] beside channels
/// that come last and else [out, in, places], and the padding is the same on both sides. What
/// follows a forward convolution is of its type, and the addend of y's shape.
struct CudnnConvolution {
  ConvolutionPart part = ConvolutionPart::kForward;
  Type type = Type::kFloat;
  Convolution convolution;
  void* x = nullptr;
  void* filter = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  const void* addend = nullptr;
  Activation activation = Activation::kNone;
};

bool is_cudnn_usable();

/// Has cuDNN compute it in the running kernel's stream, behind what `prepare` launches. False, and
/// `prepare` is not called, if cuDNN has no way to do it. Throws Failure.
bool convolve_by_cudnn(const KernelCall& call, const CudnnConvolution& job,
                       const std::function<void()>& prepare);

}  // namespace tandem::cuda
