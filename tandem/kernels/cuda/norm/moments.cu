// _Moments: mean and variance of each channel, the last axis, from one reading.

#include "tandem/kernels/cuda/norm/channel_sums.h"

namespace tandem::cuda {
namespace {

template <class T, class Out>
TANDEM_KERNEL finish_moments_kernel(const T* x, const Two* partial, Channels c, std::int64_t pieces,
                                    Out* mean, Out* variance) {
  const auto n = static_cast<float>(c.elements());
  for (auto i = first_index<std::int64_t>(); i < c.channels; i += index_step<std::int64_t>()) {
    const Two sum = total_of(partial, i, c.channels, pieces);
    const float shift = sum.first / n, spread = sum.second / n - shift * shift;
    mean[i] = store<Out>(n > 0.0f ? load(x[i]) + shift : shift);
    variance[i] = store<Out>(spread < 0.0f ? 0.0f : spread);
  }
}

template <class F>
void visit_narrow(Type type, F&& f) {
  if (type == Type::kFloat) return f(Tag<float>());
  if (type == Type::kHalf) return f(Tag<Half>());
  if (type == Type::kBFloat16) return f(Tag<BFloat16>());
  no_kernel_for(type);
}

}  // namespace

void norm_moments(KernelCall& call) {
  const TensorView x = call.input(0);
  if (x.rank() < 2) refuse("x must have rank 2 or more");
  const Channels c = channels_of(x.sizes, "NHWC");
  const auto allocate = [&](int output, const char* keeps) {
    Sizes sizes(call.attr_bool(keeps) ? x.sizes.size() : 1, 1);
    sizes.back() = c.channels;
    return call.allocate_output(output, sizes);
  };
  const TensorView mean = allocate(0, "keep_mean_dims"),
                   variance = allocate(1, "keep_variance_dims");
  if (c.channels == 0) return;
  const std::int64_t pieces = channel_pieces(c);
  auto* const partial =
      static_cast<Two*>(call.scratch(static_cast<std::size_t>(pieces * c.channels) * sizeof(Two)));
  visit_narrow(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    channel_sums(MomentTerms<T>{x.as<T>(), c.inner}, c, partial);
    visit_narrow(mean.type, [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      TANDEM_LAUNCH((finish_moments_kernel<T, Out>), shape_for(c.channels), 0, x.as<T>(), partial,
                    c, pieces, mean.as<Out>(), variance.as<Out>());
    });
  });
}

}  // namespace tandem::cuda
