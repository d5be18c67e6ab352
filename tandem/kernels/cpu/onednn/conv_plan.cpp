#include "tandem/kernels/cpu/onednn/conv_plan.h"

#include <string_view>

#include "tandem/core/error.h"
#include "tandem/core/program_end.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

#if DNNL_VERSION_MAJOR >= 3
auto forward_desc(const ConvDescription& s) {
  return dnnl::convolution_forward::primitive_desc(engine(), dnnl::prop_kind::forward_training,
                                                   kDirect, s.input, s.filter, s.output, s.stride,
                                                   s.dilation, s.before, s.after, user_scratch());
}
auto input_desc(const ConvDescription& s) {
  return dnnl::convolution_backward_data::primitive_desc(engine(), kDirect, s.input, s.filter,
                                                         s.output, s.stride, s.dilation, s.before,
                                                         s.after, forward_desc(s), user_scratch());
}
auto filter_gradient_desc(const ConvDescription& s, const ConvDescription& hint) {
  return dnnl::convolution_backward_weights::primitive_desc(
      engine(), kDirect, s.input, s.filter, s.output, s.stride, s.dilation, s.before, s.after,
      forward_desc(hint), user_scratch());
}
#else
auto forward_desc(const ConvDescription& s) {
  return dnnl::convolution_forward::primitive_desc(
      {dnnl::prop_kind::forward_training, kDirect, s.input, s.filter, s.output, s.stride,
       s.dilation, s.before, s.after},
      user_scratch(), engine());
}
auto input_desc(const ConvDescription& s) {
  return dnnl::convolution_backward_data::primitive_desc(
      {kDirect, s.input, s.filter, s.output, s.stride, s.dilation, s.before, s.after},
      user_scratch(), engine(), forward_desc(s));
}
auto filter_gradient_desc(const ConvDescription& s, const ConvDescription& hint) {
  return dnnl::convolution_backward_weights::primitive_desc(
      {kDirect, s.input, s.filter, s.output, s.stride, s.dilation, s.before, s.after},
      user_scratch(), engine(), forward_desc(hint));
}
#endif

// The library's own plain loops are no faster than ours and know no threads.
template <class Desc>
bool is_slow(const Desc& desc) {
  const std::string_view name = desc.impl_info_str();
  return name.starts_with("ref");
}

struct Reorder {
  memory::desc from, to;
};

Plan make_reorder(const void* what) {
  const Reorder& r = *static_cast<const Reorder*>(what);
  const dnnl::reorder::primitive_desc desc(engine(), r.from, engine(), r.to, user_scratch());
  return Plan(desc, dnnl::reorder(desc), {{DNNL_ARG_FROM, r.from}, {DNNL_ARG_TO, r.to}});
}

}  // namespace

Plan conv_plan(ConvResult result, const ConvDescription& conv, const memory::desc& gradient) {
  if (result == ConvResult::kOutput) {
    const auto desc = forward_desc(conv);
    if (is_slow(desc)) return {};
    return Plan(desc, dnnl::convolution_forward(desc),
                {{DNNL_ARG_SRC, desc.src_desc()},
                 {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                 {DNNL_ARG_DST, desc.dst_desc()}});
  }
  if (result == ConvResult::kInput) {
    const auto desc = input_desc(conv);
    if (is_slow(desc)) return {};
    return Plan(desc, dnnl::convolution_backward_data(desc),
                {{DNNL_ARG_WEIGHTS, desc.weights_desc()},
                 {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                 {DNNL_ARG_DIFF_SRC, desc.diff_src_desc()}});
  }
  ConvDescription with_gradient = conv;
  with_gradient.filter = gradient;
  const auto desc = filter_gradient_desc(with_gradient, conv);
  if (is_slow(desc)) return {};
  return Plan(desc, dnnl::convolution_backward_weights(desc),
              {{DNNL_ARG_SRC, desc.src_desc()},
               {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
               {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()}});
}

const memory::desc& filter_desc(ConvResult result, const Call& call) {
  const std::size_t position = result == ConvResult::kOutput  ? 1
                               : result == ConvResult::kInput ? 0
                                                              : 2;
  return call.plan().arguments[position].desc;
}

void reorder_filter(const Key& key, const memory::desc& from, const memory::desc& to,
                    const void* source, void* target) {
  const Reorder what{from, to};
  Call& call = find_call(key, make_reorder, &what);
  if (!call.possible()) {
    stop_at_program_end();
    throw InternalError("oneDNN cannot rearrange a filter.");
  }
  call.run({source, target});
}

}  // namespace tandem::cpu::onednn
