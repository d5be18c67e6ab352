#include "tandem/kernels/cpu/onednn/fused_conv.h"

#include <cstring>
#include <string_view>

#include "tandem/kernels/cpu/onednn/conv_call.h"
#include "tandem/kernels/cpu/onednn/conv_parts.h"
#include "tandem/kernels/cpu/onednn/packed_weights.h"
#include "tandem/kernels/cpu/onednn/post_ops.h"
#include "tandem/kernels/cpu/support/scratch.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

struct FusedCase {
  ConvCase p;
  const Epilogue* epilogue;
  bool bias;
  DType out;
};

Plan make(const void* what) {
  const FusedCase& f = *static_cast<const FusedCase*>(what);
  ConvDescription s = describe_conv(f.p);
  s.output = memory::desc({f.p.batch, f.p.out_depth, f.p.y.output, f.p.x.output}, data_type(f.out),
                          memory::format_tag::nhwc);
  const memory::desc bias =
      f.bias ? memory::desc({f.p.out_depth}, memory::data_type::f32, memory::format_tag::x)
             : memory::desc();
  const dnnl::primitive_attr attr = epilogue_attr(*f.epilogue);
  constexpr auto kInference = dnnl::prop_kind::forward_inference;
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::convolution_forward::primitive_desc desc(engine(), kInference, kDirect, s.input,
                                                       s.filter, bias, s.output, s.stride,
                                                       s.dilation, s.before, s.after, attr);
#else
  const dnnl::convolution_forward::primitive_desc desc(
      {kInference, kDirect, s.input, s.filter, bias, s.output, s.stride, s.dilation, s.before,
       s.after},
      attr, engine());
#endif
  if (std::string_view(desc.impl_info_str()).starts_with("ref")) return {};
  std::vector<Plan::Argument> arguments{{DNNL_ARG_SRC, desc.src_desc()},
                                        {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                        {DNNL_ARG_DST, desc.dst_desc()}};
  if (f.bias) arguments.push_back({DNNL_ARG_BIAS, bias});
  return Plan(desc, dnnl::convolution_forward(desc), std::move(arguments));
}

Call& call_of(const FusedCase& f) {
  return find_call(conv_key(kFusedConv, ConvResult::kOutput, f.p, epilogue_kind(*f.epilogue),
                            bits_of(f.epilogue->alpha), static_cast<std::int64_t>(f.out), f.bias),
                   make, &f);
}

}  // namespace

const Array& plain_weights(const Array& filter) {
  const PackedWeights* packed = packed_weights(filter);
  return packed ? packed->plain() : filter;
}

bool fused_conv(KernelContext& c, const ConvCase& p, const Epilogue& e, const void* image,
                const Array& filter, const float* bias, Array& output) {
  PackedWeights* const kept = packed_weights(filter);
  const DType out = output.dtype();
  const void* const addend = e.addend ? e.addend->raw_data() : nullptr;
  const ConvGrid grid = cut_conv(c, p, true);
  const auto case_of = [&](const ConvPart& part) {
    return FusedCase{part.p, &e, bias != nullptr, out};
  };
  for (std::int64_t i = 0; i < grid.parts(); ++i)
    if (!call_of(case_of(conv_part(p, grid, i))).possible()) return false;
  const ConvPart first = conv_part(p, grid, 0);
  const Call& call = call_of(case_of(first));
  // Weights that are not constant are packed for this run; parts may want different orders.
  const bool plain = filter_is_plain(ConvResult::kOutput, first.p, call);
  const memory::desc packed_desc = filter_desc(ConvResult::kOutput, call);
  const Scratch packed(kept || plain ? 0 : packed_desc.get_size());
  if (!kept && !plain)
    pack_filter(ConvResult::kOutput, first.p, call, filter.raw_data(), packed.data());

  const auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const ConvPart part = conv_part(p, grid, i);
      Call& own = call_of(case_of(part));
      const void* weights = nullptr;
      const memory::desc& wanted = filter_desc(ConvResult::kOutput, own);
      const auto pack = [&](const void* from, void* to) {
        pack_filter(ConvResult::kOutput, part.p, own, from, to);
      };
      Array mine;
      if (filter_is_plain(ConvResult::kOutput, part.p, own)) {
        weights = plain_weights(filter).raw_data();
      } else if (kept) {
        weights = kept->in_order(wanted, 0, pack);
      } else if (wanted == packed_desc) {
        weights = packed.data();
      }
      if (!weights) {
        mine = c.allocate_temp(DType::kUint8, Shape{static_cast<std::int64_t>(wanted.get_size())});
        pack(plain_weights(filter).raw_data(), mine.raw_data());
        weights = mine.raw_data();
      }
      const void* from = element_at(image, part.input, p.dtype);
      std::byte* to = element_at(output.raw_data(), part.output, out);
      // The library adds to what is there. Each thread copies its own part, just before it needs
      // it.
      if (addend && addend != output.raw_data()) {
        std::memcpy(
            to, element_at(addend, part.output, out),
            static_cast<std::size_t>(part.p.output_shape().num_elements()) * dtype_size(out));
      }
      if (bias) {
        own.run({from, weights, to, bias});
      } else {
        own.run({from, weights, to});
      }
    }
  };
  if (grid.parts() == 1) {
    run(0, 1);
  } else {
    c.intra_op().for_each_piece(grid.parts(), run);
  }
  return true;
}

}  // namespace tandem::cpu::onednn
