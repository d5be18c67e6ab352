#pragma once

#include "tandem/kernels/cpu/conv/conv.h"
#include "tandem/kernels/cpu/conv/epilogue.h"

namespace tandem::cpu::onednn {

/// conv_forward of NHWC images that ends with an epilogue. `filter` is an array or one that
/// _PackWeights made; `output` is float or bfloat16, and so is the epilogue's addend, if there is
/// one, which has the output's shape and may lie in its memory. `bias` replaces the epilogue's:
/// floats, or null. False, and nothing done, if the library has no fast implementation of the case.
bool fused_conv(KernelContext& c, const ConvCase& p, const Epilogue& e, const void* image,
                const Array& filter, const float* bias, Array& output);

/// The filter of a fused convolution, however it lies in memory.
const Array& plain_weights(const Array& filter);

}  // namespace tandem::cpu::onednn
