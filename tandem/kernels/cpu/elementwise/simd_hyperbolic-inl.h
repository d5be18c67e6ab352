// Hyperbolic functions of vectors and their inverses. Special values are as in simd_math-inl.h,
// which this builds on; errors are within 3 units in the last place. Compiled once for each kind of
// processor; include it after foreach_target.h.

#include <limits>

#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

#if defined(TANDEM_KERNELS_CPU_SIMD_HYPERBOLIC_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_KERNELS_CPU_SIMD_HYPERBOLIC_INL_H
#undef TANDEM_KERNELS_CPU_SIMD_HYPERBOLIC_INL_H
#else
#define TANDEM_KERNELS_CPU_SIMD_HYPERBOLIC_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// (sinh(x) / x - 1) / x^2 in powers of x^2 for |x| <= 1, highest first: minimax fits of our own.
template <class T>
struct SinhPolynomial;
template <>
struct SinhPolynomial<float> {
  static constexpr float k[] = {2.806280258e-6f, 0.0001983810197f, 0.008333339676f, 0.1666666665f};
};
template <>
struct SinhPolynomial<double> {
  static constexpr double k[] = {
      7.7461785930188275e-13, 1.6057679623801638e-10, 2.5052117695907824e-8, 2.7557319191381817e-6,
      0.00019841269841324198, 0.0083333333333332994,  0.16666666666666667};
};

template <class D, class V>
HWY_INLINE V Sinh(D d, V x) {
  const auto a = hn::Abs(x);
  const auto z = hn::Mul(x, x);
  const auto near =
      hn::MulAdd(hn::Mul(a, z), Polynomial(d, z, SinhPolynomial<hn::TFromD<D>>::k), a);
  const auto half = ScaledExp<-1>(d, a);
  const auto far = hn::Sub(half, hn::Div(hn::Set(d, hn::TFromD<D>(0.25)), half));
  return hn::CopySignToAbs(hn::IfThenElse(hn::Lt(a, hn::Set(d, 1)), near, far), x);
}

template <class D, class V>
HWY_INLINE V Cosh(D d, V x) {
  const auto half = ScaledExp<-1>(d, hn::Abs(x));
  return hn::Add(half, hn::Div(hn::Set(d, hn::TFromD<D>(0.25)), half));
}

// log(1 + small) where x is of ordinary size, log(2x) where its square could overflow.
template <class D, class V>
HWY_INLINE V LogOfSum(D d, V x, V small) {
  const auto huge = hn::Gt(x, hn::Set(d, hn::TFromD<D>(0x1p60)));
  const auto log2 = hn::Set(d, static_cast<hn::TFromD<D>>(0.69314718055994530942));
  return hn::Add(Log1p(d, hn::IfThenElse(huge, x, small)), hn::IfThenElseZero(huge, log2));
}

template <class D, class V>
HWY_INLINE V Asinh(D d, V x) {
  const auto one = hn::Set(d, 1);
  const auto a = hn::Abs(x);
  const auto z = hn::Mul(a, a);
  const auto root = hn::Sqrt(hn::Add(z, one));
  const auto y = LogOfSum(d, a, hn::Add(a, hn::Div(z, hn::Add(root, one))));
  return hn::CopySignToAbs(y, x);
}

template <class D, class V>
HWY_INLINE V Acosh(D d, V x) {
  const auto one = hn::Set(d, 1);
  const auto t = hn::Sub(x, one);
  const auto y = LogOfSum(d, x, hn::Add(t, hn::Sqrt(hn::MulAdd(t, t, hn::Add(t, t)))));
  const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(hn::Lt(x, one), nan, y);
}

template <class D, class V>
HWY_INLINE V Atanh(D d, V x) {
  const auto a = hn::Abs(x);
  const auto t = hn::Div(hn::Add(a, a), hn::Sub(hn::Set(d, 1), a));
  return hn::CopySignToAbs(hn::Mul(Log1p(d, t), hn::Set(d, hn::TFromD<D>(0.5))), x);
}

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
