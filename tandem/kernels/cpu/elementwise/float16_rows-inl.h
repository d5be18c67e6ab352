// Rows of half and bfloat16 to and from float. Compiled once for each kind of processor; include it
// after foreach_target.h.

#include <cstdint>

#include <hwy/highway.h>

#include "tandem/core/half.h"

#if defined(TANDEM_KERNELS_CPU_FLOAT16_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_KERNELS_CPU_FLOAT16_ROWS_INL_H
#undef TANDEM_KERNELS_CPU_FLOAT16_ROWS_INL_H
#else
#define TANDEM_KERNELS_CPU_FLOAT16_ROWS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Below AVX2 there are no instructions for half, and Highway's emulation rounds otherwise than we
// do.
#undef TANDEM_HALF_ROWS
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
#define TANDEM_HALF_ROWS 1
#else
#define TANDEM_HALF_ROWS 0
#endif

HWY_INLINE void HalfToFloats(const Half* from, float* to, std::int64_t n) {
  std::int64_t i = 0;
#if TANDEM_HALF_ROWS
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from + i))),
               d, to + i);
  }
#endif
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

HWY_INLINE void FloatsToHalf(const float* from, Half* to, std::int64_t n) {
  std::int64_t i = 0;
#if TANDEM_HALF_ROWS
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, from + i)), dh,
               reinterpret_cast<hwy::float16_t*>(to + i));
  }
#endif
  for (; i < n; ++i) to[i] = Half(from[i]);
}

HWY_INLINE void BFloat16ToFloats(const BFloat16* from, float* to, std::int64_t n) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> dh;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits =
        hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const std::uint16_t*>(from + i)));
    hn::StoreU(hn::ShiftLeft<16>(bits), d, reinterpret_cast<std::uint32_t*>(to + i));
  }
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

HWY_INLINE void FloatsToBFloat16(const float* from, BFloat16* to, std::int64_t n) {
  const hn::ScalableTag<float> df;
  const hn::RebindToUnsigned<decltype(df)> d;
  const hn::Rebind<std::uint16_t, decltype(d)> dh;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto quiet_nan = hn::Set(d, std::uint32_t{BFloat16(__builtin_nanf("")).bits});
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::LoadU(df, from + i);
    const auto bits = hn::BitCast(d, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
    auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffu))));
    if (const auto nan = hn::IsNaN(value); !hn::AllFalse(df, nan)) [[unlikely]] {
      const auto sign = hn::ShiftLeft<15>(hn::ShiftRight<31>(bits));
      rounded = hn::IfThenElse(hn::RebindMask(d, nan), hn::Or(quiet_nan, sign), rounded);
    }
    hn::StoreU(hn::DemoteTo(dh, hn::BitCast(hn::RebindToSigned<decltype(d)>(), rounded)), dh,
               reinterpret_cast<std::uint16_t*>(to + i));
  }
  for (; i < n; ++i) to[i] = BFloat16(from[i]);
}

HWY_INLINE void ToFloats(const Half* from, float* to, std::int64_t n) { HalfToFloats(from, to, n); }
HWY_INLINE void ToFloats(const BFloat16* from, float* to, std::int64_t n) {
  BFloat16ToFloats(from, to, n);
}
HWY_INLINE void FromFloats(const float* from, Half* to, std::int64_t n) {
  FloatsToHalf(from, to, n);
}
HWY_INLINE void FromFloats(const float* from, BFloat16* to, std::int64_t n) {
  FloatsToBFloat16(from, to, n);
}

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
