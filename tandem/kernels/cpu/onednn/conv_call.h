#pragma once

#include "tandem/kernels/cpu/conv.h"
#include "tandem/kernels/cpu/onednn/conv_plan.h"

// What the convolutions over two axes share: primitives, and filters in the library's own order.

namespace tandem::cpu::onednn {

/// Takes its arrays in the order of ConvFn. Its filter lies as the library likes it best; the
/// gradient of a bfloat16 filter is float.
Call& conv_call(ConvResult result, const ConvCase& p);

/// True if the filter of `call` lies in our own order, [height, width, in / groups, out].
bool filter_is_plain(ConvResult result, const ConvCase& p, const Call& call);

/// Brings a filter of the case's dtype from our order to that of `call`.
void pack_filter(ConvResult result, const ConvCase& p, const Call& call, const void* filter,
                 void* packed);
/// The gradient of a filter from the order of `call` to ours and to the case's dtype.
void unpack_filter(const ConvCase& p, const Call& call, const void* packed, void* filter);

}  // namespace tandem::cpu::onednn
