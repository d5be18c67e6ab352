#include <cstddef>

#include "tandem/core/error.h"
#include "tandem/core/program_end.h"
#include "tandem/kernels/cpu/onednn/call.h"
#include "tandem/kernels/cpu/onednn/conv.h"

namespace tandem::cpu::onednn {
namespace {

using dnnl::memory;

constexpr std::int64_t kSwap = 5;

struct Swap {
  memory::data_type type;
  bool to_nhwc;
  std::int64_t height, width, depth;
};

Plan make_swap(const void* what) {
  const Swap& s = *static_cast<const Swap*>(what);
  const memory::dims dims{1, s.depth, s.height, s.width};
  const memory::desc nchw(dims, s.type, memory::format_tag::nchw);
  const memory::desc nhwc(dims, s.type, memory::format_tag::nhwc);
  const memory::desc &from = s.to_nhwc ? nchw : nhwc, &to = s.to_nhwc ? nhwc : nchw;
  const dnnl::reorder::primitive_desc desc(engine(), from, engine(), to, user_scratch());
  return Plan(desc, dnnl::reorder(desc), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace

void swap_image_order(IntraOpPool& pool, DType dtype, bool to_nhwc, std::int64_t batch,
                      std::int64_t height, std::int64_t width, std::int64_t depth, const void* from,
                      void* to) {
  const Swap what{data_type(dtype), to_nhwc, height, width, depth};
  const Key key{kSwap, static_cast<std::int64_t>(dtype), to_nhwc, height, width, depth};
  const std::int64_t elements = height * width * depth;
  const std::int64_t bytes = elements * static_cast<std::int64_t>(dtype_size(dtype));
  pool.parallel_for(batch, static_cast<double>(elements) * 0.5,
                    [&](std::int64_t begin, std::int64_t end) {
                      Call& call = find_call(key, make_swap, &what);
                      if (!call.possible()) {
                        stop_at_program_end();
                        throw InternalError("oneDNN cannot rearrange an image.");
                      }
                      for (std::int64_t i = begin; i < end; ++i) {
                        call.run({static_cast<const std::byte*>(from) + i * bytes,
                                  static_cast<std::byte*>(to) + i * bytes});
                      }
                    });
}

}  // namespace tandem::cpu::onednn
