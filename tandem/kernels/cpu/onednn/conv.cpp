#include "tandem/kernels/cpu/onednn/conv.h"

#include <atomic>
#include <cstddef>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/onednn/conv_call.h"
#include "tandem/kernels/cpu/onednn/conv_parts.h"
#include "tandem/kernels/cpu/support/scratch.h"

namespace tandem::cpu::onednn {
namespace {

// Runs `run(part, packed filter)` for every part. The filter is packed once, for the first part;
// should the library want another order for parts of another size, those pack their own.
template <class Run>
bool for_each_part(KernelContext& c, ConvResult result, const ConvCase& p, const ConvGrid& grid,
                   const void* filter, Run run) {
  const ConvPart first = conv_part(p, grid, 0);
  Call& call = conv_call(result, first.p);
  if (!call.possible()) return false;
  const bool plain = filter_is_plain(result, first.p, call);
  const dnnl::memory::desc packed_desc = filter_desc(result, call);
  const Scratch packed(plain ? 0 : packed_desc.get_size());
  if (!plain) pack_filter(result, first.p, call, filter, packed.data());

  std::atomic<bool> possible{true};
  const auto work = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const ConvPart part = conv_part(p, grid, i);
      Call& own = conv_call(result, part.p);
      if (!own.possible()) {
        possible.store(false, std::memory_order_relaxed);
      } else if (plain && filter_is_plain(result, part.p, own)) {
        run(own, part, filter);
      } else if (!plain && filter_desc(result, own) == packed_desc) {
        run(own, part, packed.data());
      } else {
        const Scratch mine(filter_desc(result, own).get_size());
        pack_filter(result, part.p, own, filter, mine.data());
        run(own, part, mine.data());
      }
    }
  };
  if (grid.parts() == 1) {
    work(0, 1);
  } else {
    c.intra_op().for_each_piece(grid.parts(), work);
  }
  return possible.load(std::memory_order_relaxed);
}

}  // namespace

bool conv_forward(KernelContext& c, const ConvCase& p, const void* image, const void* filter,
                  void* output) {
  return for_each_part(c, ConvResult::kOutput, p, cut_conv(c, p, true), filter,
                       [&](Call& call, const ConvPart& part, const void* packed) {
                         call.run({element_at(image, part.input, p.dtype), packed,
                                   element_at(output, part.output, p.dtype)});
                       });
}

bool conv_backprop_input(KernelContext& c, const ConvCase& p, const void* filter,
                         const void* gradient, void* image) {
  return for_each_part(c, ConvResult::kInput, p, cut_conv(c, p, false), filter,
                       [&](Call& call, const ConvPart& part, const void* packed) {
                         call.run({packed, element_at(gradient, part.output, p.dtype),
                                   element_at(image, part.input, p.dtype)});
                       });
}

}  // namespace tandem::cpu::onednn
