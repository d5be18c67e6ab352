#pragma once

#include "tandem/kernels/cpu/conv.h"

// Convolutions of float (and of what is brought to NHWC images of float for oneDNN) by filters of
// one entry as products of matrices: positions x channels. Where the weights do not stay in a
// core's cache, products, which are cut for caches in every direction, are faster than oneDNN's
// convolutions (measured with 2.6: 1.05 to 1.9 times).

namespace tandem::cpu {

/// True if the case, which oneDNN would take as it is, is one of those.
bool runs_as_product(const ConvCase& p);

// Parameters as at ConvFn; only for cases that are products.
void conv_forward_product(KernelContext& c, const ConvCase& p, const void* image,
                          const void* filter, void* output);
void conv_backprop_input_product(KernelContext& c, const ConvCase& p, const void* filter,
                                 const void* gradient, void* image);
void conv_backprop_filter_product(KernelContext& c, const ConvCase& p, const void* image,
                                  const void* gradient, void* filter);

}  // namespace tandem::cpu
