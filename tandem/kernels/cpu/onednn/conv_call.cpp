#include "tandem/kernels/cpu/onednn/conv_call.h"

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

ConvDescription describe(const ConvCase& p) {
  return {.input = {{p.batch, p.in_depth, p.y.input, p.x.input},
                    data_type(p.dtype),
                    memory::format_tag::nhwc},
          .filter = {filter_dims(p), data_type(p.dtype), memory::format_tag::any},
          .output = {{p.batch, p.out_depth, p.y.output, p.x.output},
                     data_type(p.dtype),
                     memory::format_tag::nhwc},
          .stride = {p.y.stride, p.x.stride},
          .dilation = {p.y.dilation - 1, p.x.dilation - 1},
          .before = {p.y.pad_before, p.x.pad_before},
          .after = {p.y.pad_after, p.x.pad_after}};
}

template <ConvResult result>
Plan make_conv(const void* what) {
  const ConvCase& p = *static_cast<const ConvCase*>(what);
  return conv_plan(result, describe(p),
                   {filter_dims(p), memory::data_type::f32, memory::format_tag::any});
}

}  // namespace

Call& conv_call(ConvResult result, const ConvCase& p) {
  const MakePlan make = result == ConvResult::kOutput  ? make_conv<ConvResult::kOutput>
                        : result == ConvResult::kInput ? make_conv<ConvResult::kInput>
                                                       : make_conv<ConvResult::kFilter>;
  return find_call(conv_key(kConv, result, p), make, &p);
}

bool filter_is_plain(ConvResult result, const ConvCase& p, const Call& call) {
  return filter_desc(result, call) == plain_filter(p);
}

void pack_filter(ConvResult result, const ConvCase& p, const Call& call, const void* filter,
                 void* packed) {
  reorder_filter(conv_key(kPack, result, p), plain_filter(p), filter_desc(result, call), filter,
                 packed);
}

void unpack_filter(const ConvCase& p, const Call& call, const void* packed, void* filter) {
  reorder_filter(conv_key(kUnpack, ConvResult::kFilter, p), filter_desc(ConvResult::kFilter, call),
                 plain_filter(p), packed, filter);
}

}  // namespace tandem::cpu::onednn
