// Exponentials and logarithms of vectors of float and double, for every argument: infinities, NaN,
// subnormal numbers and signed zeros come out as from the standard library, whose values are met
// within 2 units in the last place. An element's result does not depend on its neighbours. Compiled
// once for each kind of processor; include it after foreach_target.h.

#include <cstdint>
#include <limits>

#include <hwy/highway.h>

#if defined(TANDEM_KERNELS_CPU_SIMD_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_KERNELS_CPU_SIMD_MATH_INL_H
#undef TANDEM_KERNELS_CPU_SIMD_MATH_INL_H
#else
#define TANDEM_KERNELS_CPU_SIMD_MATH_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
  using Bits = std::int32_t;
  static constexpr int kMantissa = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kShift = 0x1.8p23f;  // adding it rounds to an integer, in the low bits
  static constexpr Bits kShiftBits = 0x4b400000;
  // Arguments of exp beyond which the result is infinite or 0, and of expm1 below which it is -1.
  static constexpr float kExpHigh = 89.0f, kExpLow = -104.0f, kExpm1Low = -18.0f;
  static constexpr float kTanhHigh = 20.0f;  // of 2|x|
  // ln 2 in two parts: products of the first with whole numbers are exact.
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr float kLogLn2High = 6.9313812256e-01f, kLogLn2Low = 9.0580006145e-06f;
  static constexpr Bits kRootHalf = 0x3f3504f3;
  static constexpr Bits kOne = 0x3f800000;
  static constexpr float kSubnormalScale = 0x1p25f;
  static constexpr float kSubnormalExponent = 25.0f;
  // (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2, highest power first.
  static constexpr float kExp[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                   4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  // (log((1 + s) / (1 - s)) / s - 2) / s^2 in powers of s^2, highest first.
  static constexpr float kLog[] = {0.24279078841f, 0.28498786688f, 0.40000972152f, 0.66666662693f};
};

template <>
struct MathConstants<double> {
  using Bits = std::int64_t;
  static constexpr int kMantissa = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kShift = 0x1.8p52;
  static constexpr Bits kShiftBits = 0x4338000000000000;
  static constexpr double kExpHigh = 710.0, kExpLow = -746.0, kExpm1Low = -38.0;
  static constexpr double kTanhHigh = 44.0;
  static constexpr double kLn2High = 6.93145751953125e-1, kLn2Low = 1.42860682030941723212e-6;
  static constexpr double kLogLn2High = 6.93147180369123816490e-01,
                          kLogLn2Low = 1.90821492927058770002e-10;
  static constexpr Bits kRootHalf = 0x3fe6a09e667f3bcd;
  static constexpr Bits kOne = 0x3ff0000000000000;
  static constexpr double kSubnormalScale = 0x1p54;
  static constexpr double kSubnormalExponent = 54.0;
  static constexpr double kExp[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
      1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2};
  static constexpr double kLog[] = {1.479819860511658591e-01, 1.531383769920937332e-01,
                                    1.818357216161805012e-01, 2.222219843214978396e-01,
                                    2.857142874366239149e-01, 3.999999999940941908e-01,
                                    6.666666666666735130e-01};
};

template <class D>
using ConstantsOf = MathConstants<hn::TFromD<D>>;

template <class D, int n, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> Polynomial(D d, hn::Vec<D> x, const T (&coefficients)[n]) {
  auto sum = hn::Set(d, coefficients[0]);
  for (int i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, coefficients[i]));
  return sum;
}

// x = n ln 2 + r with |r| <= ln 2 / 2.
template <class D>
struct Reduced {
  hn::Vec<D> r;
  hn::Vec<hn::RebindToSigned<D>> n;
};
template <class D, class V>
HWY_INLINE Reduced<D> ReduceExp(D d, V x) {
  using C = ConstantsOf<D>;
  const hn::RebindToSigned<D> di;
  const auto shift = hn::Set(d, C::kShift);
  const auto shifted =
      hn::Add(hn::Mul(x, hn::Set(d, static_cast<hn::TFromD<D>>(1.44269504088896340736))), shift);
  const auto whole = hn::Sub(shifted, shift);
  auto r = hn::NegMulAdd(whole, hn::Set(d, C::kLn2High), x);
  r = hn::NegMulAdd(whole, hn::Set(d, C::kLn2Low), r);
  return {r, hn::Sub(hn::BitCast(di, shifted), hn::Set(di, C::kShiftBits))};
}

// 2^n for n within the range of normal numbers.
template <class D, class VI>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, VI n) {
  using C = ConstantsOf<D>;
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<C::kMantissa>(hn::Add(n, hn::Set(di, C::kBias))));
}

// exp(r) - 1 for a reduced r.
template <class D, class V>
HWY_INLINE V ReducedExpm1(D d, V r) {
  return hn::MulAdd(Polynomial(d, r, ConstantsOf<D>::kExp), hn::Mul(r, r), r);
}

// x between two numbers; NaN passes. Min and Max return their second argument if there is a NaN,
// except without vectors.
template <class D, class V, class T = hn::TFromD<D>>
HWY_INLINE V Limit(D d, V x, T low, T high) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  const auto raised = hn::IfThenElse(hn::Lt(x, hn::Set(d, low)), hn::Set(d, low), x);
  return hn::IfThenElse(hn::Gt(raised, hn::Set(d, high)), hn::Set(d, high), raised);
#else
  return hn::Min(hn::Set(d, high), hn::Max(hn::Set(d, low), x));
#endif
}

// 2^power exp(x) for a small power, also where exp(x) alone would be too large.
template <int power, class D, class V>
HWY_INLINE V ScaledExp(D d, V x) {
  using C = ConstantsOf<D>;
  const hn::RebindToSigned<D> di;
  const auto limited = Limit(d, x, C::kExpLow, C::kExpHigh + (power < 0));
  const auto reduced = ReduceExp(d, limited);
  // In two steps: 2^n may be too large or too small for a normal number where the result is not.
  const auto n = power == 0 ? reduced.n : hn::Add(reduced.n, hn::Set(di, power));
  const auto half = hn::ShiftRight<1>(n);
  const auto y = hn::Add(ReducedExpm1(d, reduced.r), hn::Set(d, 1));
  return hn::Mul(hn::Mul(y, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(n, half)));
}
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  return ScaledExp<0>(d, x);
}

template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  using C = ConstantsOf<D>;
  const hn::RebindToSigned<D> di;
  const auto limited = Limit(d, x, C::kExpm1Low, C::kExpHigh);
  const auto reduced = ReduceExp(d, limited);
  // 2^n (p + 1) - 1, by half of it so that 2^n cannot overflow.
  const auto half = PowerOfTwo(d, hn::Sub(reduced.n, hn::Set(di, 1)));
  const auto y = hn::MulAdd(ReducedExpm1(d, reduced.r), half, hn::Sub(half, hn::Set(d, 0.5)));
  const auto small = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-60));
  return hn::IfThenElse(small, x, hn::Add(y, y));
}

// log(x) + correction, for every x; the correction counts for ordinary x alone.
template <class D, class V>
HWY_INLINE V LogPlus(D d, V x, V correction) {
  using T = hn::TFromD<D>;
  using C = ConstantsOf<D>;
  const hn::RebindToSigned<D> di;
  const auto subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<T>::min()));
  const auto normal = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, C::kSubnormalScale)), x);
  // normal = 2^k m with m between the roots of 1/2 and 2.
  const auto bits = hn::Add(hn::BitCast(di, normal), hn::Set(di, C::kOne - C::kRootHalf));
  const auto k_bits = hn::Sub(hn::ShiftRight<C::kMantissa>(bits), hn::Set(di, C::kBias));
  auto k =
      hn::Sub(hn::BitCast(d, hn::Add(k_bits, hn::Set(di, C::kShiftBits))), hn::Set(d, C::kShift));
  k = hn::Sub(k, hn::IfThenElseZero(subnormal, hn::Set(d, C::kSubnormalExponent)));
  const auto mantissa = hn::And(bits, hn::Set(di, (typename C::Bits{1} << C::kMantissa) - 1));
  const auto f =
      hn::Sub(hn::BitCast(d, hn::Add(mantissa, hn::Set(di, C::kRootHalf))), hn::Set(d, 1));

  const auto s = hn::Div(f, hn::Add(f, hn::Set(d, 2)));
  const auto z = hn::Mul(s, s);
  const auto rest = hn::Mul(z, Polynomial(d, z, C::kLog));
  const auto square = hn::Mul(hn::Mul(f, f), hn::Set(d, 0.5));
  auto low = hn::MulAdd(k, hn::Set(d, C::kLogLn2Low), correction);
  low = hn::MulAdd(s, hn::Add(square, rest), low);
  const auto y = hn::MulAdd(k, hn::Set(d, C::kLogLn2High), hn::Add(hn::Sub(low, square), f));

  const auto infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  const auto ordinary = hn::And(hn::Gt(x, hn::Zero(d)), hn::Lt(x, infinity));
  // 0 gives -infinity; below there is none, and infinity and NaN stay.
  auto special =
      hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), x);
  special = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), special);
  return hn::IfThenElse(ordinary, y, special);
}

template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  return LogPlus(d, x, hn::Zero(d));
}

template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  const auto one = hn::Set(d, 1);
  const auto u = hn::Add(x, one);
  // What rounding took from u, exactly.
  const auto part = hn::Sub(u, one);
  const auto lost = hn::Add(hn::Sub(x, part), hn::Sub(one, hn::Sub(u, part)));
  const auto y = LogPlus(d, u, hn::Div(lost, u));
  const auto small = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-60));
  return hn::IfThenElse(small, x, y);
}

template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const auto magnitude = hn::Abs(x);
  const auto twice =
      Limit(d, hn::Add(magnitude, magnitude), hn::TFromD<D>(0), ConstantsOf<D>::kTanhHigh);
  const auto e = Expm1(d, twice);
  return hn::CopySignToAbs(hn::Div(e, hn::Add(e, hn::Set(d, 2))), x);
}

template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const auto one = hn::Set(d, 1);
  const auto e = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Ge(x, hn::Zero(d)), one, e), hn::Add(e, one));
}

// erf of 0 <= x < 1, float.
template <class D, class V>
HWY_INLINE V ErfNear(D d, V x) {
  constexpr float k[] = {-5.96761703e-4f, 4.99119423e-3f,  -2.67681349e-2f,
                         1.12819925e-1f,  -3.76125336e-1f, 1.28379166e-1f};
  return hn::MulAdd(Polynomial(d, hn::Mul(x, x), k), x, x);
}

// A polynomial near 0, and 1 minus an exponential from there on; both are minimax fits of our own.
template <class D, class V>
HWY_INLINE V ErfOfDouble(D d, V x) {
  constexpr double kNear[] = {
      5.9571761477489114e-11, -1.1372848856791674e-9,  1.4659775274047436e-8,
      -1.6350312701054695e-7, 1.6461000484121368e-6,   -1.4925595266831182e-5,
      0.00012055331111642711, -0.00085483269808337899, 0.0052239776248180145,
      -0.026866170645076793,  0.11283791670954879,     -0.37612638903183748,
      0.12837916709551257};
  // exp(x^2) erfc(x) for 1/2 <= x <= 6, in t = 1 / (1 + x / 2) moved to [-1, 1].
  constexpr double kFar[] = {
      4.4133850329466984e-13,  1.8386753405993422e-11, -7.4551044962063099e-11,
      -2.6260417449824267e-10, 2.6248030731791733e-9,  -5.9376429346490129e-10,
      -7.0053561504327599e-8,  1.6350179331888475e-7,  1.9795619117948378e-6,
      -7.3405185545281367e-6,  -8.0792204274463084e-5, 0.00019713917780504528,
      0.0055888162818401483,   0.038560570425178751,   0.16189356804102498,
      0.22142954022993184};
  const auto one = hn::Set(d, 1.0);
  const auto a = Limit(d, hn::Abs(x), 0.0, 6.0);  // erf(6) is 1
  const auto z = hn::Mul(a, a);
  const auto near = hn::MulAdd(Polynomial(d, z, kNear), a, a);
  const auto t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.5), one));
  const auto s = hn::MulSub(t, hn::Set(d, 4.8), hn::Set(d, 2.2));
  const auto far = hn::NegMulAdd(Exp(d, hn::Neg(z)), Polynomial(d, s, kFar), one);
  return hn::CopySignToAbs(hn::IfThenElse(hn::Gt(a, one), far, near), x);
}

template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return ErfOfDouble(d, x);
  } else {
    const auto t = Limit(d, hn::Abs(x), 0.0f, 4.0f);  // erf(4) is 1
    const auto s = hn::Mul(t, t);
    auto r = hn::MulAdd(hn::Set(d, -1.72853470e-5f), t, hn::Set(d, 3.83197126e-4f));
    const auto u = hn::MulAdd(hn::Set(d, -3.88396438e-3f), t, hn::Set(d, 2.42546219e-2f));
    r = hn::MulAdd(r, s, u);
    r = hn::MulAdd(r, t, hn::Set(d, -1.06777877e-1f));
    r = hn::MulAdd(r, t, hn::Set(d, -6.34846687e-1f));
    r = hn::MulAdd(r, t, hn::Set(d, -1.28717512e-1f));
    r = hn::MulAdd(r, t, hn::Neg(t));
    const auto far = hn::Sub(hn::Set(d, 1.0f), Exp(d, r));
    const auto is_far = hn::Gt(t, hn::Set(d, 0.927734375f));
    return hn::CopySignToAbs(hn::IfThenElse(is_far, far, ErfNear(d, t)), x);
  }
}

// Float alone. For x >= 0, erfc(x) = t exp(g(t) - x^2) with t = 1 / (1 + x / 2), where g is nearly
// linear (as in W. H. Press et al., Numerical Recipes, 6.2); the polynomial is a fit of our own,
// good to 5e-8. An error in the exponent is one of the result's own size, so that is a sum of two.
template <class D, class V>
HWY_INLINE V Erfc(D d, V x) {
  constexpr float kG[] = {5.834373466e-05f, 7.261723737e-05f,  -5.581761824e-04f, -2.126358594e-04f,
                          3.808998003e-03f, -1.179936931e-03f, -2.989236816e-02f, 1.635156995e-02f,
                          5.729981754e-01f, -5.614465384e-01f};
  const auto one = hn::Set(d, 1.0f);
  const auto a = Limit(d, hn::Abs(x), 0.0f, 10.2f);  // beyond, the result is 0
  const auto t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.5f), one));
  const auto s = hn::Mul(hn::Sub(t, hn::Set(d, 0.58125f)), hn::Set(d, 1.0f / 0.41875f));
  const hn::RebindToUnsigned<D> du;
  const auto high = hn::BitCast(d, hn::And(hn::BitCast(du, a), hn::Set(du, 0xfffff000u)));
  const auto rest = hn::NegMulAdd(hn::Sub(a, high), hn::Add(a, high), Polynomial(d, s, kG));
  const auto square = hn::Mul(high, high);  // exact
  const auto exponent = hn::Sub(rest, square);
  const auto lost = hn::Sub(rest, hn::Add(exponent, square));
  const auto e = Exp(d, exponent);
  const auto far = hn::Mul(t, hn::MulAdd(e, lost, e));
  const auto whole = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Sub(hn::Set(d, 2.0f), far), far);
  const auto near = hn::Sub(one, hn::CopySignToAbs(ErfNear(d, a), x));
  const auto result = hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.5f)), near, whole);
  return hn::IfThenElse(hn::Eq(x, x), result, x);
}

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
