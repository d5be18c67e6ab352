#pragma once

#include "tandem/kernels/cpu/conv/conv.h"

// Convolutions of NHWC images in float or bfloat16 by oneDNN, which runs on one thread at a time:
// the pool's threads take parts of the batch, or of the rows where the batch is short. Operands and
// results are as at ConvFn, and no size is 0. False, and nothing done, if the library has no fast
// implementation of the case.

namespace tandem::cpu::onednn {

bool conv_forward(KernelContext& c, const ConvCase& p, const void* image, const void* filter,
                  void* output);
bool conv_backprop_input(KernelContext& c, const ConvCase& p, const void* filter,
                         const void* gradient, void* image);
bool conv_backprop_filter(KernelContext& c, const ConvCase& p, const void* image,
                          const void* gradient, void* filter);

/// Images of `dtype` from [batch, depth, height, width] to [batch, height, width, depth], or back.
void swap_image_order(IntraOpPool& pool, DType dtype, bool to_nhwc, std::int64_t batch,
                      std::int64_t height, std::int64_t width, std::int64_t depth, const void* from,
                      void* to);

}  // namespace tandem::cpu::onednn
