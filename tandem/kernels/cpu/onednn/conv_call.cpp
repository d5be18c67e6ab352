#include "tandem/kernels/cpu/onednn/conv_call.h"

#include <string_view>

#include "tandem/core/error.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t kConv = 2, kPack = 3, kUnpack = 4;

Key conv_key(std::int64_t kind, ConvResult result, const ConvCase& p) {
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
             p.x.output};
}

memory::dims filter_dims(const ConvCase& p) {
  if (p.groups == 1) return {p.out_depth, p.in_depth, p.y.filter, p.x.filter};
  return {p.groups, p.group_out(), p.group_in(), p.y.filter, p.x.filter};
}

memory::desc plain_filter(const ConvCase& p) {
  const memory::dim in = p.out_depth, x = in * p.group_in(), y = x * p.x.filter;
  if (p.groups == 1) return {filter_dims(p), data_type(p.dtype), memory::dims{1, in, y, x}};
  return {filter_dims(p), data_type(p.dtype), memory::dims{p.group_out(), 1, in, y, x}};
}

// The pieces that a primitive is described by, and the description in the two versions' ways.
struct Parts {
  memory::desc input, filter, output;
  memory::dims stride, dilation, before, after;

  Parts(const ConvCase& p, memory::data_type filter_type)
      : input({p.batch, p.in_depth, p.y.input, p.x.input}, data_type(p.dtype),
              memory::format_tag::nhwc),
        filter(filter_dims(p), filter_type, memory::format_tag::any),
        output({p.batch, p.out_depth, p.y.output, p.x.output}, data_type(p.dtype),
               memory::format_tag::nhwc),
        stride{p.y.stride, p.x.stride},
        dilation{p.y.dilation - 1, p.x.dilation - 1},
        before{p.y.pad_before, p.x.pad_before},
        after{p.y.pad_after, p.x.pad_after} {}
};

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

#if DNNL_VERSION_MAJOR >= 3
auto forward_desc(const Parts& s) {
  return dnnl::convolution_forward::primitive_desc(engine(), dnnl::prop_kind::forward_training,
                                                   kDirect, s.input, s.filter, s.output, s.stride,
                                                   s.dilation, s.before, s.after, user_scratch());
}
auto input_desc(const Parts& s) {
  return dnnl::convolution_backward_data::primitive_desc(engine(), kDirect, s.input, s.filter,
                                                         s.output, s.stride, s.dilation, s.before,
                                                         s.after, forward_desc(s), user_scratch());
}
auto filter_gradient_desc(const Parts& s, const Parts& hint) {
  return dnnl::convolution_backward_weights::primitive_desc(
      engine(), kDirect, s.input, s.filter, s.output, s.stride, s.dilation, s.before, s.after,
      forward_desc(hint), user_scratch());
}
#else
auto forward_desc(const Parts& s) {
  return dnnl::convolution_forward::primitive_desc(
      {dnnl::prop_kind::forward_training, kDirect, s.input, s.filter, s.output, s.stride,
       s.dilation, s.before, s.after},
      user_scratch(), engine());
}
auto input_desc(const Parts& s) {
  return dnnl::convolution_backward_data::primitive_desc(
      {kDirect, s.input, s.filter, s.output, s.stride, s.dilation, s.before, s.after},
      user_scratch(), engine(), forward_desc(s));
}
auto filter_gradient_desc(const Parts& s, const Parts& hint) {
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

template <ConvResult result>
Plan make_conv(const void* what) {
  const ConvCase& p = *static_cast<const ConvCase*>(what);
  const Parts parts(p, data_type(p.dtype));
  if constexpr (result == ConvResult::kOutput) {
    const auto desc = forward_desc(parts);
    if (is_slow(desc)) return {};
    return Plan(desc, dnnl::convolution_forward(desc),
                {{DNNL_ARG_SRC, desc.src_desc()},
                 {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                 {DNNL_ARG_DST, desc.dst_desc()}});
  } else if constexpr (result == ConvResult::kInput) {
    const auto desc = input_desc(parts);
    if (is_slow(desc)) return {};
    return Plan(desc, dnnl::convolution_backward_data(desc),
                {{DNNL_ARG_WEIGHTS, desc.weights_desc()},
                 {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                 {DNNL_ARG_DIFF_SRC, desc.diff_src_desc()}});
  } else {
    const auto desc = filter_gradient_desc(Parts(p, memory::data_type::f32), parts);
    if (is_slow(desc)) return {};
    return Plan(desc, dnnl::convolution_backward_weights(desc),
                {{DNNL_ARG_SRC, desc.src_desc()},
                 {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                 {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()}});
  }
}

struct Reorder {
  memory::desc from, to;
};

Plan make_reorder(const void* what) {
  const Reorder& r = *static_cast<const Reorder*>(what);
  const dnnl::reorder::primitive_desc desc(engine(), r.from, engine(), r.to, user_scratch());
  return Plan(desc, dnnl::reorder(desc), {{DNNL_ARG_FROM, r.from}, {DNNL_ARG_TO, r.to}});
}

void reorder(const Key& key, const memory::desc& from, const memory::desc& to, const void* source,
             void* target) {
  const Reorder what{from, to};
  Call& call = find_call(key, make_reorder, &what);
  if (!call.possible()) throw InternalError("oneDNN cannot rearrange a filter.");
  call.run({source, target});
}

}  // namespace

Call& conv_call(ConvResult result, const ConvCase& p) {
  const MakePlan make = result == ConvResult::kOutput  ? make_conv<ConvResult::kOutput>
                        : result == ConvResult::kInput ? make_conv<ConvResult::kInput>
                                                       : make_conv<ConvResult::kFilter>;
  return find_call(conv_key(kConv, result, p), make, &p);
}

const memory::desc& filter_desc(ConvResult result, const Call& call) {
  const std::size_t position = result == ConvResult::kOutput  ? 1
                               : result == ConvResult::kInput ? 0
                                                              : 2;
  return call.plan().arguments[position].desc;
}

bool filter_is_plain(ConvResult result, const ConvCase& p, const Call& call) {
  return filter_desc(result, call) == plain_filter(p);
}

void pack_filter(ConvResult result, const ConvCase& p, const Call& call, const void* filter,
                 void* packed) {
  reorder(conv_key(kPack, result, p), plain_filter(p), filter_desc(result, call), filter, packed);
}

void unpack_filter(const ConvCase& p, const Call& call, const void* packed, void* filter) {
  reorder(conv_key(kUnpack, ConvResult::kFilter, p), filter_desc(ConvResult::kFilter, call),
          plain_filter(p), packed, filter);
}

}  // namespace tandem::cpu::onednn
