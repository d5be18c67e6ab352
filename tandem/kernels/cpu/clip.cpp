// ClipByValue.

#include <cstdint>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/broadcast_rows.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

// A bound that is NaN bounds nothing, and NaN stays.
template <int kStep, class T>
void clip_row(const T* x, const T* low, const T* high, T* out, std::int64_t n) {
  using C = Compute<T>;
  constexpr int kBlock = 16;  // a constant count is what compilers turn into vector instructions
  const auto clip_one = [=](std::int64_t i) {
    const C value = static_cast<C>(x[i]);
    const C most = static_cast<C>(high[i * kStep]);
    const C least = static_cast<C>(low[i * kStep]);
    const C below = most < value ? most : value;
    out[i] = static_cast<T>(below < least ? least : below);
  };
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int k = 0; k < kBlock; ++k) clip_one(i + k);
  }
  for (; i < n; ++i) clip_one(i);
}

template <class T>
void clip_mixed_row(const T* x, const T* low, std::int64_t low_step, const T* high,
                    std::int64_t high_step, T* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T bounds[] = {low[i * low_step], high[i * high_step]};
    clip_row<0>(x + i, bounds, bounds + 1, out + i, 1);
  }
}

void clip_by_value(KernelContext& c) {
  const Array& x = c.input(0);
  const Shape& low_shape = c.input(1).shape();
  const Shape& high_shape = c.input(2).shape();
  const auto fits = [&x](const Shape& s) { return s.rank() == 0 || s == x.shape(); };
  if (!fits(low_shape) || !fits(high_shape)) {
    throw InvalidArgumentError(cat(
        "clip_value_min and clip_value_max must be either of the same shape as input, or a "
        "scalar. input shape: ",
        x.shape(), " clip_value_min shape: ", low_shape, " clip_value_max shape: ", high_shape));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  const std::int64_t low_step = low_shape.rank() == 0 ? 0 : 1;
  const std::int64_t high_step = high_shape.rank() == 0 ? 0 : 1;
  with_real(x.dtype(), [&]<class T>() {
    c.intra_op().parallel_for(x.num_elements(), 0.5, [&](std::int64_t begin, std::int64_t end) {
      const T* const values = x.data<T>() + begin;
      const T* const low = c.input(1).data<T>() + begin * low_step;
      const T* const high = c.input(2).data<T>() + begin * high_step;
      T* const to = out.data<T>() + begin;
      if (low_step != high_step)
        clip_mixed_row(values, low, low_step, high, high_step, to, end - begin);
      else if (low_step == 0)
        clip_row<0>(values, low, high, to, end - begin);
      else
        clip_row<1>(values, low, high, to, end - begin);
    });
  });
}

const KernelRegistration kClip{
    {.op = "ClipByValue", .types = {{"T", kRealTypes}}, .run = clip_by_value}};

}  // namespace
}  // namespace tandem::cpu
