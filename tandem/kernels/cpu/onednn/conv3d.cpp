#include "tandem/kernels/cpu/conv/conv3d.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "tandem/kernels/cpu/onednn/conv_plan.h"
#include "tandem/kernels/cpu/support/scratch.h"
#include "tandem/kernels/cpu/support/thresholds.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t kConv = 20, kPack = 21, kUnpack = 22;

Key key_of(std::int64_t kind, ConvResult result, const Conv3DCase& p) {
  const WindowAxis &z = p.axis[0], &y = p.axis[1], &x = p.axis[2];
  return Key{kind,
             static_cast<std::int64_t>(result),
             static_cast<std::int64_t>(p.dtype),
             p.batch,
             p.in_depth,
             p.out_depth,
             p.groups,
             z.input,
             z.filter,
             z.stride,
             z.dilation,
             z.pad_before,
             z.pad_after,
             z.output,
             y.input,
             y.filter,
             y.stride,
             y.dilation,
             y.pad_before,
             y.pad_after,
             y.output,
             x.input,
             x.filter,
             x.stride,
             x.dilation,
             x.pad_before,
             x.pad_after,
             x.output};
}

memory::dims filter_dims(const Conv3DCase& p) {
  const WindowAxis* a = p.axis;
  if (p.groups == 1) return {p.out_depth, p.in_depth, a[0].filter, a[1].filter, a[2].filter};
  return {p.groups, p.group_out(), p.group_in(), a[0].filter, a[1].filter, a[2].filter};
}

// Our own order of a filter.
memory::desc plain_filter(const Conv3DCase& p) {
  const memory::dim in = p.out_depth, x = in * p.group_in(), y = x * p.axis[2].filter,
                    z = y * p.axis[1].filter;
  if (p.groups == 1) return {filter_dims(p), data_type(p.dtype), memory::dims{1, in, z, y, x}};
  return {filter_dims(p), data_type(p.dtype), memory::dims{p.group_out(), 1, in, z, y, x}};
}

ConvDescription describe(const Conv3DCase& p) {
  ConvDescription conv{
      .input = {{p.batch, p.in_depth, p.axis[0].input, p.axis[1].input, p.axis[2].input},
                data_type(p.dtype),
                memory::format_tag::ndhwc},
      .filter = {filter_dims(p), data_type(p.dtype), memory::format_tag::any},
      .output = {{p.batch, p.out_depth, p.axis[0].output, p.axis[1].output, p.axis[2].output},
                 data_type(p.dtype),
                 memory::format_tag::ndhwc}};
  for (const WindowAxis& a : p.axis) {
    conv.stride.push_back(a.stride);
    conv.dilation.push_back(a.dilation - 1);
    conv.before.push_back(a.pad_before);
    conv.after.push_back(a.pad_after);
  }
  return conv;
}

template <ConvResult result>
Plan make_conv(const void* what) {
  const Conv3DCase& p = *static_cast<const Conv3DCase*>(what);
  return conv_plan(result, describe(p),
                   {filter_dims(p), memory::data_type::f32, memory::format_tag::any});
}

Call& call_of(ConvResult result, const Conv3DCase& p) {
  const MakePlan make = result == ConvResult::kOutput  ? make_conv<ConvResult::kOutput>
                        : result == ConvResult::kInput ? make_conv<ConvResult::kInput>
                                                       : make_conv<ConvResult::kFilter>;
  return find_call(key_of(kConv, result, p), make, &p);
}

// A part of the work: some images, or some output planes of one image.
struct Part {
  Conv3DCase p;
  std::int64_t input = 0, output = 0;  // elements before it
};

Part batch_part(const Conv3DCase& whole, std::int64_t i, std::int64_t pieces) {
  Part part{whole};
  const std::int64_t begin = whole.batch * i / pieces;
  part.p.batch = whole.batch * (i + 1) / pieces - begin;
  part.input = begin * whole.inputs() * whole.in_depth;
  part.output = begin * whole.outputs() * whole.out_depth;
  return part;
}

Part plane_part(const Conv3DCase& whole, std::int64_t begin, std::int64_t end) {
  Part part{whole};
  const WindowAxis& z = whole.axis[0];
  const std::int64_t reach = (z.filter - 1) * z.dilation + 1;
  const std::int64_t first = begin * z.stride - z.pad_before;
  const std::int64_t last = (end - 1) * z.stride - z.pad_before + reach;
  WindowAxis& cut = part.p.axis[0];
  cut.output = end - begin;
  cut.pad_before = std::max<std::int64_t>(0, -first);
  cut.pad_after = std::max<std::int64_t>(0, last - z.input);
  cut.input = std::min(last, z.input) - std::max<std::int64_t>(first, 0);
  part.input =
      std::max<std::int64_t>(first, 0) * whole.axis[1].input * whole.axis[2].input * whole.in_depth;
  part.output = begin * whole.axis[1].output * whole.axis[2].output * whole.out_depth;
  return part;
}

std::int64_t wanted_pieces(const KernelContext& c, const Conv3DCase& p) {
  const bool fixed = c.deterministic();
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(p.multiplications() / (fixed ? tuning::kFixedConvMultiplications
                                                             : tuning::kThreadMultiplications)),
      1, fixed ? tuning::kMaxFixedConvParts : c.intra_op().threads());
}

const std::byte* at(const void* base, std::int64_t element, DType dtype) {
  return static_cast<const std::byte*>(base) +
         element * static_cast<std::int64_t>(dtype_size(dtype));
}

// Runs every part with the filter in the order that the part's primitive likes.
bool run_parts(KernelContext& c, ConvResult result, const Conv3DCase& p, const void* filter,
               const void* input, const void* output) {
  const std::int64_t pieces = wanted_pieces(c, p);
  const WindowAxis& z = p.axis[0];
  const std::int64_t reach = (z.filter - 1) * z.dilation + 1;
  const bool by_planes = result == ConvResult::kOutput && p.batch == 1 && pieces > 1 &&
                         z.pad_before < reach && z.pad_after < reach && z.input >= reach;
  const std::int64_t parts = std::min(pieces, by_planes ? z.output : p.batch);
  const auto part_of = [&](std::int64_t i) {
    return by_planes ? plane_part(p, z.output * i / parts, z.output * (i + 1) / parts)
                     : batch_part(p, i, parts);
  };
  const Part first = part_of(0);
  Call& call = call_of(result, first.p);
  if (!call.possible()) return false;
  const memory::desc packed_desc = filter_desc(result, call);
  const bool plain = packed_desc == plain_filter(p);
  const Scratch packed(plain ? 0 : packed_desc.get_size());
  const auto pack = [&](const Part& part, const Call& own, void* to) {
    reorder_filter(key_of(kPack, result, part.p), plain_filter(p), filter_desc(result, own), filter,
                   to);
  };
  if (!plain) pack(first, call, packed.data());
  const auto run = [&](Call& own, const void* images, const void* own_filter, const void* made) {
    if (result == ConvResult::kOutput) return own.run({images, own_filter, made});
    own.run({own_filter, images, made});
  };
  std::atomic<bool> possible{true};
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Part part = part_of(i);
      Call& own = call_of(result, part.p);
      if (!own.possible()) {
        possible.store(false, std::memory_order_relaxed);
        continue;
      }
      const void* images = at(result == ConvResult::kOutput ? input : output,
                              result == ConvResult::kOutput ? part.input : part.output, p.dtype);
      const void* made = at(result == ConvResult::kOutput ? output : input,
                            result == ConvResult::kOutput ? part.output : part.input, p.dtype);
      const memory::desc own_desc = filter_desc(result, own);
      if (own_desc == packed_desc) {
        run(own, images, plain ? filter : packed.data(), made);
      } else {
        const Scratch mine(own_desc.get_size());
        pack(part, own, mine.data());
        run(own, images, mine.data(), made);
      }
    }
  };
  if (parts == 1) {
    work(0, 1);
  } else {
    c.intra_op().for_each_piece(parts, work);
  }
  return possible.load(std::memory_order_relaxed);
}

}  // namespace

bool conv3d_forward(KernelContext& c, const Conv3DCase& p, const void* image, const void* filter,
                    void* output) {
  return run_parts(c, ConvResult::kOutput, p, filter, image, output);
}

bool conv3d_backprop_input(KernelContext& c, const Conv3DCase& p, const void* filter,
                           const void* gradient, void* image) {
  return run_parts(c, ConvResult::kInput, p, filter, image, gradient);
}

// Cut by the sizes alone, and summed in order: the same bits on any number of threads.
bool conv3d_backprop_filter(KernelContext& c, const Conv3DCase& p, const void* image,
                            const void* gradient, void* filter) {
  const std::int64_t pieces = std::clamp<std::int64_t>(
      std::min(
          static_cast<std::int64_t>(p.multiplications() / tuning::kFilterThreadMultiplications),
          p.batch),
      1, 32);
  const Part first = batch_part(p, 0, pieces);
  Call& call = call_of(ConvResult::kFilter, first.p);
  if (!call.possible()) return false;
  const memory::desc desc = filter_desc(ConvResult::kFilter, call);
  const auto floats = static_cast<std::int64_t>(desc.get_size() / sizeof(float));
  const Scratch scratch(static_cast<std::size_t>(pieces * floats) * sizeof(float));
  float* const sums = scratch.as<float>();
  std::atomic<bool> possible{true};
  c.intra_op().for_each_piece(pieces, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Part part = batch_part(p, i, pieces);
      Call& own = call_of(ConvResult::kFilter, part.p);
      if (!own.possible() || !(filter_desc(ConvResult::kFilter, own) == desc)) {
        possible.store(false, std::memory_order_relaxed);
        return;
      }
      own.run(
          {at(image, part.input, p.dtype), at(gradient, part.output, p.dtype), sums + i * floats});
    }
  });
  if (!possible.load(std::memory_order_relaxed)) return false;
  for (std::int64_t i = 1; i < pieces; ++i) {
    for (std::int64_t k = 0; k < floats; ++k) sums[k] += sums[i * floats + k];
  }
  reorder_filter(key_of(kUnpack, ConvResult::kFilter, first.p), desc, plain_filter(p), sums,
                 filter);
  return true;
}

}  // namespace tandem::cpu::onednn
