#pragma once

#include "tandem/kernels/cpu/onednn/call.h"

// What convolutions over two and three axes share.

namespace tandem::cpu::onednn {

/// Which of its three arrays a convolution computes.
enum class ConvResult : std::int64_t { kOutput = 1, kInput, kFilter };

/// A convolution as the library describes it.
struct ConvDescription {
  dnnl::memory::desc input, filter, output;
  dnnl::memory::dims stride, dilation, before, after;
};

/// The primitive, or a plan without one where the library has nothing better than plain loops. The
/// arguments are what is read, in the order input or filter, then the output's gradient if it is
/// read, and last what is computed. A filter's gradient has `gradient` for its description.
Plan conv_plan(ConvResult result, const ConvDescription& conv, const dnnl::memory::desc& gradient);

/// How the filter, or its gradient, of a plan's call lies in memory.
const dnnl::memory::desc& filter_desc(ConvResult result, const Call& call);

/// Copies a filter from one order to another; `key` names the pair.
void reorder_filter(const Key& key, const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                    const void* source, void* target);

}  // namespace tandem::cpu::onednn
