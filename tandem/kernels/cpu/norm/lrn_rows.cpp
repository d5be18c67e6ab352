#include "tandem/kernels/cpu/norm/lrn_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/norm/lrn_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;

void WindowSums(const float* padded, std::int64_t width, float* out, std::int64_t n) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto sum = hn::Zero(d);
    for (std::int64_t k = 0; k < width; ++k) sum = hn::Add(sum, hn::LoadU(d, padded + i + k));
    hn::StoreU(sum, d, out + i);
  }
  if (i == n) return;
  auto sum = hn::Zero(d);
  for (std::int64_t k = 0; k < width; ++k) sum = hn::Add(sum, LoadTail(d, padded + i + k, n - i));
  StoreTail(sum, d, out + i, n - i);
}

struct Power {
  float beta;
  HWY_INLINE hn::Vec<D> operator()(D d, hn::Vec<D> x) const {
    const auto one = hn::Set(d, 1.0f);
    if (beta == 1) return hn::Div(one, x);
    if (beta == 0.5f) return hn::Div(one, hn::Sqrt(x));
    if (beta == 0.75f) {
      const auto root = hn::Sqrt(x);
      return hn::Div(one, hn::Mul(root, hn::Sqrt(root)));
    }
    return Exp(d, hn::Mul(hn::Set(d, -beta), Log(d, x)));
  }
};

void NegativePowers(const float* x, float beta, float* out, std::int64_t n) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Power power{beta};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(power(d, hn::LoadU(d, x + i)), d, out + i);
  if (i < n) StoreTail(power(d, LoadTail(d, x + i, n - i)), d, out + i, n - i);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(WindowSums);
HWY_EXPORT(NegativePowers);

void window_sums(const float* padded, std::int64_t width, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(WindowSums)(padded, width, out, n);
}
void negative_powers(const float* x, float beta, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(NegativePowers)(x, beta, out, n);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
