// Sines, tangents and their inverses of vectors. Special values are as in simd_math-inl.h, which
// this builds on; errors are within 2.5 units in the last place. The polynomials are minimax fits
// of our own. Compiled once for each kind of processor; include it after foreach_target.h.

#include <cmath>
#include <cstdint>

#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

#if defined(TANDEM_KERNELS_CPU_SIMD_CIRCULAR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_KERNELS_CPU_SIMD_CIRCULAR_INL_H
#undef TANDEM_KERNELS_CPU_SIMD_CIRCULAR_INL_H
#else
#define TANDEM_KERNELS_CPU_SIMD_CIRCULAR_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Polynomials in z = x^2, highest power first.
template <class T>
struct CircularConstants;

template <>
struct CircularConstants<float> {
  static constexpr float kHalfPi = 0x1.921fb6p+0f, kHalfPiLow = -0x1.777a5cp-25f;
  // (asin(x) / x - 1) / z for z <= 1/4.
  static constexpr float kAsin[] = {0.0336908472f,  0.01714923836f, 0.03110066274f,
                                    0.04459940153f, 0.07500094543f, 0.1666666634f};
  // (atan(x) / x - 1) / z for z <= 1.
  static constexpr float kAtan[] = {-0.002386997317f, 0.01350777143f, -0.03587153898f,
                                    0.06250169445f,   -0.0865688043f, 0.1103376412f,
                                    -0.1427856875f,   0.1999973933f,  -0.3333333173f};
};

template <>
struct CircularConstants<double> {
  static constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
  static constexpr double kAsin[] = {
      0.028757851367421565, -0.014851887071247203, 0.017400879442694022, 0.0054575067186403583,
      0.010322814350185779, 0.011479177415184906,  0.013971212973552933, 0.017352392720869973,
      0.022372172942149888, 0.030381944138531247,  0.04464285714635543,  0.074999999999984329,
      0.16666666666666668};
  static constexpr double kAtan[] = {
      1.8061954618612152e-5, -0.00019996189377901382, 0.0010496035084968515, -0.0034958859739163095,
      0.0083689311784501621, -0.015535152475414176,   0.023696731580048622,  -0.031277189066996385,
      0.037494868125352471,  -0.042603566326016521,   0.04737749579527779,   -0.052579733342841108,
      0.058815068777936561,  -0.066665646992891042,   0.076922989710332169,  -0.090909085908919342,
      0.11111111093490828,   -0.14285714285384132,    0.19999999999997532,   -0.3333333333333333};
};

// asin of a for a < 1/2, else of sqrt((1 - a) / 2), which is half of acos(a).
template <class D>
struct InverseSine {
  hn::Vec<D> y;
  hn::Mask<D> near;
};
template <class D, class V>
HWY_INLINE InverseSine<D> HalfAsin(D d, V a) {
  const auto half = hn::Set(d, hn::TFromD<D>(0.5));
  const auto near = hn::Lt(a, half);
  const auto z = hn::IfThenElse(near, hn::Mul(a, a), hn::NegMulAdd(a, half, half));
  const auto s = hn::IfThenElse(near, a, hn::Sqrt(z));
  const auto p = Polynomial(d, z, CircularConstants<hn::TFromD<D>>::kAsin);
  return {hn::MulAdd(hn::Mul(s, z), p, s), near};
}

template <class D, class V>
HWY_INLINE V Asin(D d, V x) {
  using C = CircularConstants<hn::TFromD<D>>;
  const auto [y, near] = HalfAsin(d, hn::Abs(x));
  const auto far =
      hn::Sub(hn::Set(d, C::kHalfPi), hn::Sub(hn::Add(y, y), hn::Set(d, C::kHalfPiLow)));
  return hn::CopySignToAbs(hn::IfThenElse(near, y, far), x);
}

template <class D, class V>
HWY_INLINE V Acos(D d, V x) {
  using C = CircularConstants<hn::TFromD<D>>;
  const auto high = hn::Set(d, C::kHalfPi), low = hn::Set(d, C::kHalfPiLow);
  const auto [y, near] = HalfAsin(d, hn::Abs(x));
  const auto positive = hn::Ge(x, hn::Zero(d));
  const auto twice = hn::Add(y, y);
  const auto beyond = hn::Sub(hn::Add(high, high), hn::Sub(twice, hn::Add(low, low)));
  const auto within = hn::Sub(high, hn::Sub(hn::CopySignToAbs(y, x), low));
  return hn::IfThenElse(near, within, hn::IfThenElse(positive, twice, beyond));
}

// atan of 0 <= q <= 1.
template <class D, class V>
HWY_INLINE V AtanBelowOne(D d, V q) {
  const auto z = hn::Mul(q, q);
  const auto p = Polynomial(d, z, CircularConstants<hn::TFromD<D>>::kAtan);
  return hn::MulAdd(hn::Mul(q, z), p, q);
}

template <class D, class V>
HWY_INLINE V Atan(D d, V x) {
  using C = CircularConstants<hn::TFromD<D>>;
  const auto one = hn::Set(d, 1);
  const auto a = hn::Abs(x);
  const auto large = hn::Gt(a, one);
  const auto y = AtanBelowOne(d, hn::IfThenElse(large, hn::Div(one, a), a));
  const auto rest = hn::Sub(hn::Set(d, C::kHalfPi), hn::Sub(y, hn::Set(d, C::kHalfPiLow)));
  return hn::CopySignToAbs(hn::IfThenElse(large, rest, y), x);
}

// The angle is a multiple of a quarter turn and, with one sign or the other, the atan of the
// smaller coordinate over the larger one.
template <class D, class V>
HWY_INLINE V Atan2(D d, V y, V x) {
  using C = CircularConstants<hn::TFromD<D>>;
  const auto zero = hn::Zero(d);
  const auto ax = hn::Abs(x), ay = hn::Abs(y);
  const auto steep = hn::Gt(ay, ax);
  const auto small = hn::IfThenElse(steep, ax, ay), large = hn::IfThenElse(steep, ay, ax);
  // Both may be 0, or infinite.
  const auto diagonal = hn::IfThenElse(hn::Eq(small, zero), zero, hn::Set(d, 1));
  const auto q = hn::IfThenElse(hn::Eq(small, large), diagonal, hn::Div(small, large));
  const auto r = AtanBelowOne(d, q);

  const auto sign = hn::And(x, hn::SignBit(d));
  const auto left = hn::Lt(hn::Or(sign, hn::Set(d, 1)), zero);  // -0 too
  const auto quarter = hn::Set(d, C::kHalfPi), quarter_low = hn::Set(d, C::kHalfPiLow);
  const auto high =
      hn::IfThenElse(steep, quarter, hn::IfThenElseZero(left, hn::Add(quarter, quarter)));
  const auto low = hn::IfThenElse(steep, quarter_low,
                                  hn::IfThenElseZero(left, hn::Add(quarter_low, quarter_low)));
  const auto signed_r = hn::Xor(hn::Xor(r, sign), hn::IfThenElseZero(steep, hn::SignBit(d)));
  return hn::CopySignToAbs(hn::Add(high, hn::Add(signed_r, low)), y);
}

// ---- Sine, cosine and tangent of double; float is calculated in double. ----

// Beyond, whole quarters times the parts of pi / 2 are no longer exact.
inline constexpr double kMaxCircular = 0x1p20;

// x = n pi / 2 + r + low with |r| <= pi / 4, for 0 <= x < kMaxCircular.
template <class D>
struct Quarters {
  hn::Vec<D> r, low;
  hn::Vec<hn::RebindToSigned<D>> n;
};
// For a result that becomes a float, r alone says enough.
template <bool of_float, class D, class V>
HWY_INLINE Quarters<D> ReduceCircle(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto shift = hn::Set(d, MathConstants<double>::kShift);
  const auto shifted = hn::Add(hn::Mul(x, hn::Set(d, 0.63661977236758134)), shift);
  const auto whole = hn::Sub(shifted, shift);
  // pi / 2 in three parts; the first two have 33 bits, so their products are exact.
  const auto first = hn::NegMulAdd(whole, hn::Set(d, 0x1.921fb544p+0), x);
  if constexpr (of_float) {
    const auto r = hn::NegMulAdd(whole, hn::Set(d, 0x1.0b4611a626331p-34), first);
    return {r, hn::Zero(d), hn::BitCast(di, shifted)};
  }
  const auto part = hn::Mul(whole, hn::Set(d, 0x1.0b4611a6p-34));
  const auto r = hn::Sub(first, part);
  const auto lost = hn::Sub(hn::Sub(first, r), part);
  const auto tail = hn::MulSub(whole, hn::Set(d, 0x1.3198a2e037073p-69), lost);
  const auto y = hn::Sub(r, tail);
  return {y, hn::Sub(hn::Sub(r, y), tail), hn::BitCast(di, shifted)};
}

template <class D>
struct SineAndCosine {
  hn::Vec<D> sin, cos;
};
template <bool of_float = false, class D>
HWY_INLINE SineAndCosine<D> OfReduced(D d, const Quarters<D>& q) {
  constexpr double kSin[] = {1.5918115263265975e-10,  -2.5051131650235181e-8, 2.7557316101617874e-6,
                             -0.00019841269836756773, 0.0083333333333309473,  -0.16666666666666665};
  constexpr double kCos[] = {-1.1382623647474605e-11, 2.0876146146558612e-9,
                             -2.7557317271145146e-7,  2.4801587298761456e-05,
                             -0.0013888888888887396,  0.041666666666666665};
  const auto one = hn::Set(d, 1.0);
  const auto z = hn::Mul(q.r, q.r);
  const auto half = hn::Mul(z, hn::Set(d, 0.5));
  const auto rest = hn::Sub(one, half);
  if constexpr (of_float) {
    return {hn::MulAdd(hn::Mul(q.r, z), Polynomial(d, z, kSin), q.r),
            hn::MulAdd(hn::Mul(z, z), Polynomial(d, z, kCos), rest)};
  }
  const auto sin =
      hn::Add(q.r, hn::MulAdd(hn::Mul(q.r, z), Polynomial(d, z, kSin), hn::Mul(q.low, rest)));
  const auto small = hn::MulSub(hn::Mul(z, z), Polynomial(d, z, kCos), hn::Mul(q.r, q.low));
  const auto cos = hn::Add(rest, hn::Add(hn::Sub(hn::Sub(one, rest), half), small));
  return {sin, cos};
}

// The bit of n that `shift` moves to the sign's place, as a sign.
template <int shift, class D, class VI>
HWY_INLINE hn::Vec<D> SignOf(D d, VI n) {
  return hn::And(hn::BitCast(d, hn::ShiftLeft<shift>(n)), hn::SignBit(d));
}
template <class D, class VI>
HWY_INLINE hn::Mask<D> IsOdd(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::RebindMask(d, hn::Ne(hn::And(n, hn::Set(di, 1)), hn::Zero(di)));
}

// y, but for large x what the standard library's function says.
template <class D, class V>
HWY_INLINE V OrStandard(D d, V x, V y, double (*standard)(double)) {
  const auto within = hn::Lt(hn::Abs(x), hn::Set(d, kMaxCircular));
  if (HWY_LIKELY(hn::AllTrue(d, within))) return y;
  HWY_ALIGN double xs[hn::MaxLanes(d)];
  HWY_ALIGN double ys[hn::MaxLanes(d)];
  hn::Store(x, d, xs);
  hn::Store(y, d, ys);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(std::fabs(xs[i]) < kMaxCircular)) ys[i] = standard(xs[i]);
  }
  return hn::Load(d, ys);
}

template <bool of_float = false, class D, class V>
HWY_INLINE V Sin(D d, V x) {
  const auto q = ReduceCircle<of_float>(d, hn::Abs(x));
  const auto of = OfReduced<of_float>(d, q);
  const auto magnitude = hn::IfThenElse(IsOdd(d, q.n), of.cos, of.sin);
  const auto sign = hn::Xor(SignOf<62>(d, q.n), hn::And(x, hn::SignBit(d)));
  return OrStandard(d, x, hn::Xor(magnitude, sign), [](double v) { return std::sin(v); });
}

template <bool of_float = false, class D, class V>
HWY_INLINE V Cos(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto q = ReduceCircle<of_float>(d, hn::Abs(x));
  const auto of = OfReduced<of_float>(d, q);
  const auto magnitude = hn::IfThenElse(IsOdd(d, q.n), of.sin, of.cos);
  const auto sign = SignOf<62>(d, hn::Add(q.n, hn::Set(di, 1)));
  return OrStandard(d, x, hn::Xor(magnitude, sign), [](double v) { return std::cos(v); });
}

template <bool of_float = false, class D, class V>
HWY_INLINE V Tan(D d, V x) {
  const auto q = ReduceCircle<of_float>(d, hn::Abs(x));
  const auto of = OfReduced<of_float>(d, q);
  const auto odd = IsOdd(d, q.n);
  const auto y =
      hn::Div(hn::IfThenElse(odd, hn::Neg(of.cos), of.sin), hn::IfThenElse(odd, of.sin, of.cos));
  return OrStandard(d, x, hn::Xor(y, hn::And(x, hn::SignBit(d))),
                    [](double v) { return std::tan(v); });
}

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
