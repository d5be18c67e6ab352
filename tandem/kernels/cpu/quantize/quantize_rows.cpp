// Rows of the quantizing ops, in vectors.

#include "tandem/kernels/cpu/quantize/quantize_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/quantize/quantize_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Calls f(tag, i) for whole vectors, then for each element that is left.
template <class D, class F>
HWY_INLINE void for_vectors(D d, std::int64_t n, F f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(hn::CappedTag<hn::TFromD<D>, 1>(), i);
}

// a * b, rounded. The compiler does not know that `every` has all bits set: so it does not make
// one operation of the product and a sum after it, which would be rounded once instead of twice.
template <class D, class V>
HWY_INLINE V product(D d, std::uint64_t every, V a, V b) {
  using Bits = hn::TFromD<hn::RebindToUnsigned<D>>;
  const auto mask = hn::Set(hn::RebindToUnsigned<D>(), static_cast<Bits>(every));
  return hn::And(hn::Mul(a, b), hn::BitCast(d, mask));
}

// NaN stays.
template <class V>
HWY_INLINE V clamped(V x, V min, V max) {
  const V least = hn::IfThenElse(hn::Lt(x, min), min, x);
  return hn::IfThenElse(hn::Lt(max, least), max, least);
}

template <class D, class V>
HWY_INLINE V round_away(D d, V x) {
  const V whole = hn::Trunc(x);
  const auto up = hn::Ge(hn::Abs(hn::Sub(x, whole)), hn::Set(d, hn::TFromD<D>(0.5)));
  return hn::IfThenElse(up, hn::Add(whole, hn::CopySign(hn::Set(d, hn::TFromD<D>(1)), x)), whole);
}

// NaN becomes the lowest.
template <class V>
HWY_INLINE V saturated(V x, V lowest, V highest) {
  const V least = hn::IfThenElse(hn::Gt(x, lowest), x, lowest);
  return hn::IfThenElse(hn::Lt(least, highest), least, highest);
}

template <Rounding rounding>
void quantize_with(const QuantizeRow& by, const float* x, std::int32_t* to, std::int64_t n,
                   std::uint64_t every) {
  for_vectors(hn::ScalableTag<float>(), n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto inside = clamped(hn::LoadU(d, x + i), hn::Set(d, by.min), hn::Set(d, by.max));
    const auto scaled =
        product(d, every, hn::Sub(inside, hn::Set(d, by.from)), hn::Set(d, by.scale));
    const auto place = hn::Add(scaled, hn::Set(d, by.shift));
    const auto rounded = rounding == Rounding::kDown     ? hn::Floor(place)
                         : rounding == Rounding::kToEven ? hn::Round(place)
                                                         : round_away(d, place);
    const hn::RebindToSigned<decltype(d)> di;
    const auto kept = saturated(rounded, hn::Set(d, by.lowest), hn::Set(d, by.highest));
    hn::StoreU(hn::ConvertTo(di, kept), di, to + i);
  });
}

void Quantize(const QuantizeRow& by, const float* x, std::int32_t* to, std::int64_t n,
              std::uint64_t every) {
  switch (by.rounding) {
    case Rounding::kDown: return quantize_with<Rounding::kDown>(by, x, to, n, every);
    case Rounding::kToEven: return quantize_with<Rounding::kToEven>(by, x, to, n, every);
    default: return quantize_with<Rounding::kAwayFromZero>(by, x, to, n, every);
  }
}

void QuantizeWide(const QuantizeWideRow& by, const float* x, std::int32_t* to, std::int64_t n,
                  std::uint64_t every) {
  for_vectors(hn::ScalableTag<double>(), n, [&](auto d, std::int64_t i) HWY_ATTR {
    const hn::Rebind<float, decltype(d)> df;
    const hn::Rebind<std::int32_t, decltype(d)> di;
    const auto value = hn::PromoteTo(d, hn::LoadU(df, x + i));
    const auto level = round_away(d, product(d, every, value, hn::Set(d, by.scale)));
    const auto place = hn::Add(hn::Sub(level, hn::Set(d, by.offset)), hn::Set(d, by.lowest));
    const auto kept = saturated(place, hn::Set(d, by.lowest), hn::Set(d, by.highest));
    hn::StoreU(hn::DemoteTo(di, kept), di, to + i);
  });
}

template <class W>
void RoundTrip(const RoundTripRow<W>& by, const W* x, W* to, std::int64_t n, std::uint64_t every) {
  for_vectors(hn::ScalableTag<W>(), n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto inside = clamped(hn::LoadU(d, x + i), hn::Set(d, by.min), hn::Set(d, by.max));
    const auto scaled = product(d, every, inside, hn::Set(d, by.scale));
    const auto level =
        by.half_up ? hn::Floor(hn::Add(scaled, hn::Set(d, W(0.5)))) : hn::Round(scaled);
    hn::StoreU(hn::Mul(level, hn::Set(d, by.inverse)), d, to + i);
  });
}
void RoundTripFloat(const RoundTripRow<float>& by, const float* x, float* to, std::int64_t n,
                    std::uint64_t every) {
  RoundTrip(by, x, to, n, every);
}
void RoundTripDouble(const RoundTripRow<double>& by, const double* x, double* to, std::int64_t n,
                     std::uint64_t every) {
  RoundTrip(by, x, to, n, every);
}

template <class W>
void Extend(const W* x, std::int64_t n, W& low, W& high) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto least = hn::Set(d, low), most = hn::Set(d, high);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto value = hn::LoadU(d, x + i);
    least = hn::IfThenElse(hn::Lt(value, least), value, least);
    most = hn::IfThenElse(hn::Lt(most, value), value, most);
  }
  low = hn::GetLane(hn::MinOfLanes(d, least));
  high = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = high < x[i] ? x[i] : high;
  }
}
void ExtendFloat(const float* x, std::int64_t n, float& low, float& high) {
  Extend(x, n, low, high);
}
void ExtendDouble(const double* x, std::int64_t n, double& low, double& high) {
  Extend(x, n, low, high);
}

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

namespace {
HWY_EXPORT(Quantize);
HWY_EXPORT(QuantizeWide);
HWY_EXPORT(RoundTripFloat);
HWY_EXPORT(RoundTripDouble);
HWY_EXPORT(ExtendFloat);
HWY_EXPORT(ExtendDouble);
constexpr std::uint64_t kEvery = ~std::uint64_t{0};
}  // namespace

void quantize_row(const QuantizeRow& by, const float* x, std::int32_t* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Quantize)(by, x, to, n, kEvery);
}
void quantize_row(const QuantizeWideRow& by, const float* x, std::int32_t* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(QuantizeWide)(by, x, to, n, kEvery);
}
void round_trip_row(const RoundTripRow<float>& by, const float* x, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(RoundTripFloat)(by, x, to, n, kEvery);
}
void round_trip_row(const RoundTripRow<double>& by, const double* x, double* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(RoundTripDouble)(by, x, to, n, kEvery);
}
void extend_range(const float* x, std::int64_t n, float& low, float& high) {
  HWY_DYNAMIC_DISPATCH(ExtendFloat)(x, n, low, high);
}
void extend_range(const double* x, std::int64_t n, double& low, double& high) {
  HWY_DYNAMIC_DISPATCH(ExtendDouble)(x, n, low, high);
}

}  // namespace tandem::cpu
#endif
