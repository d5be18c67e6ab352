#pragma once

#include "tandem/kernels/cpu/conv/conv.h"
#include "tandem/kernels/cpu/conv/epilogue.h"

// Convolutions of float (and of what is converted to NHWC images of float for oneDNN) by filters of
// one entry as products of matrices: positions x channels. Products are cut for caches in every
// direction; they are faster than oneDNN's convolutions where the weights do not stay in a core's
// cache (measured with 2.6: 1.05 to 1.9 times), for most filters' gradients (1.05 to 1.7 times),
// and a little where there are at least as many channels after as before (1.02 to 1.09 times).

namespace tandem::cpu {

/// True if it is a product at all: a filter of one entry, images of float in NHWC, nothing padded.
bool can_run_as_product(const ConvCase& p);

// True if the case, which oneDNN would take as it is, is one of those that are assumed to be faster
// as products. Where it can be measured, the machine at hand decides (conv_choice.h).
bool forward_runs_as_product(const ConvCase& p);
bool backprop_input_runs_as_product(const ConvCase& p);
bool backprop_filter_runs_as_product(const ConvCase& p);

// Parameters as at ConvFn; only for cases that are products.
void conv_forward_product(KernelContext& c, const ConvCase& p, const void* image,
                          const void* filter, void* output);
void conv_backprop_input_product(KernelContext& c, const ConvCase& p, const void* filter,
                                 const void* gradient, void* image);
void conv_backprop_filter_product(KernelContext& c, const ConvCase& p, const void* image,
                                  const void* gradient, void* filter);

/// With an epilogue, of floats; `output` holds the addend, if there is one.
void fused_conv_product(KernelContext& c, const ConvCase& p, const Epilogue& epilogue,
                        const void* image, const Array& filter, float* output);

}  // namespace tandem::cpu
