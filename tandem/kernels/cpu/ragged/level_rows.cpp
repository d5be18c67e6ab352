// Elements rounded to levels, in vectors.

#include "tandem/kernels/cpu/ragged/level_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/ragged/level_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// `every` has all bits set, which the compiler does not know: so it does not make one operation of
// a product and a difference, which would be rounded once instead of twice.
template <class D>
HWY_INLINE void round_vector(D d, std::uint32_t every, const LevelRow& levels, std::int64_t i,
                             const float* x, float* to) {
  const hn::RebindToUnsigned<D> bits;
  const auto low = hn::LoadU(d, levels.low + i), high = hn::LoadU(d, levels.high + i);
  const auto value = hn::LoadU(d, x + i);
  const auto least = hn::IfThenElse(hn::Lt(value, low), low, value);
  const auto inside = hn::IfThenElse(hn::Lt(high, least), high, least);
  const auto product = hn::Mul(hn::Sub(inside, low), hn::LoadU(d, levels.inverse + i));
  const auto place = hn::And(product, hn::BitCast(d, hn::Set(bits, every)));
  const auto level =
      hn::Floor(hn::Add(hn::Sub(place, hn::LoadU(d, levels.zero + i)), hn::Set(d, 0.5f)));
  hn::StoreU(hn::Mul(level, hn::LoadU(d, levels.scale + i)), d, to + i);
}

void Round(const LevelRow& levels, const float* x, float* to, std::int64_t n, std::uint32_t every) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) round_vector(d, every, levels, i, x, to);
  for (; i < n; ++i) round_vector(hn::CappedTag<float, 1>(), every, levels, i, x, to);
}

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(Round);

void round_to_levels(const LevelRow& levels, const float* x, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Round)(levels, x, to, n, ~std::uint32_t{0});
}

}  // namespace tandem::cpu
#endif
