#pragma once

#include "tandem/kernels/cpu/conv/conv.h"
#include "tandem/kernels/cpu/onednn/conv_plan.h"

// What the convolutions over two axes share: primitives, and filters in the library's own order.

namespace tandem::cpu::onednn {

// Kinds of keys.
constexpr std::int64_t kConv = 2, kPackFilter = 3, kUnpackFilter = 4, kFusedConv = 6;

/// Every number of a case, and more that a kind of key needs.
template <class... More>
Key conv_key(std::int64_t kind, ConvResult result, const ConvCase& p, More... more) {
  return Key{kind,
             static_cast<std::int64_t>(result),
             static_cast<std::int64_t>(p.dtype),
             p.batch,
             p.in_depth,
             p.out_depth,
             p.groups,
             p.y.input,
             p.y.filter,
             p.y.stride,
             p.y.dilation,
             p.y.pad_before,
             p.y.pad_after,
             p.y.output,
             p.x.input,
             p.x.filter,
             p.x.stride,
             p.x.dilation,
             p.x.pad_before,
             p.x.pad_after,
             p.x.output,
             static_cast<std::int64_t>(more)...};
}

/// The case as the library describes it, with a filter in any order.
ConvDescription describe_conv(const ConvCase& p);

/// Takes its arrays in the order of ConvFn. Its filter lies as the library likes it best; the
/// gradient of a bfloat16 filter is float.
Call& conv_call(ConvResult result, const ConvCase& p);

/// True if the filter of `call` lies in our own order, [height, width, in / groups, out].
bool filter_is_plain(ConvResult result, const ConvCase& p, const Call& call);

/// Reorders a filter of the case's dtype for `call`.
void pack_filter(ConvResult result, const ConvCase& p, const Call& call, const void* filter,
                 void* packed);
/// The gradient of a filter from the order of `call` to ours and to the case's dtype.
void unpack_filter(const ConvCase& p, const Call& call, const void* packed, void* filter);

}  // namespace tandem::cpu::onednn
