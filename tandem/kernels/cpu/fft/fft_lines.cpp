#include "tandem/kernels/cpu/fft/fft_lines.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/fft/fft_lines.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Lanes = hn::CappedTag<double, 8>;
using One = hn::CappedTag<double, 1>;
using Number = std::complex<double>;

template <class D>
struct Complex {
  using V = hn::Vec<D>;
  V re, im;

  static HWY_INLINE Complex load(const double* at) {
    return {hn::LoadU(D(), at), hn::LoadU(D(), at + hn::Lanes(D()))};
  }
  HWY_INLINE void store(double* at) const {
    hn::StoreU(re, D(), at);
    hn::StoreU(im, D(), at + hn::Lanes(D()));
  }
  HWY_INLINE Complex operator+(const Complex& b) const {
    return {hn::Add(re, b.re), hn::Add(im, b.im)};
  }
  HWY_INLINE Complex operator-(const Complex& b) const {
    return {hn::Sub(re, b.re), hn::Sub(im, b.im)};
  }
  HWY_INLINE Complex operator*(const Number& w) const {
    const V x = hn::Set(D(), w.real()), y = hn::Set(D(), w.imag());
    return {hn::NegMulAdd(im, y, hn::Mul(re, x)), hn::MulAdd(im, x, hn::Mul(re, y))};
  }
  // This and a times s; this and -i times a times s.
  HWY_INLINE Complex plus(const Complex& a, double s) const {
    const V k = hn::Set(D(), s);
    return {hn::MulAdd(a.re, k, re), hn::MulAdd(a.im, k, im)};
  }
  HWY_INLINE Complex times(double s) const {
    const V k = hn::Set(D(), s);
    return {hn::Mul(re, k), hn::Mul(im, k)};
  }
  HWY_INLINE Complex times_minus_i() const { return {im, hn::Neg(re)}; }
  HWY_INLINE Complex conj() const { return {re, hn::Neg(im)}; }
  HWY_INLINE Complex swapped() const { return {im, re}; }
};

// Runs a pass: `butterfly(x, y)` transforms the elements that x(j) gives, y(j, value) takes.
template <class D, class Butterfly>
HWY_INLINE void RunPass(const FftPass& p, const Number* twiddles, const double* in, double* out,
                        Butterfly butterfly) {
  using C = Complex<D>;
  const auto element = static_cast<std::int64_t>(2 * hn::Lanes(D()));
  const std::int64_t from_step = p.after * element, to_step = p.before * p.after * element;
  for (std::int64_t k = 0; k < p.before; ++k) {
    for (std::int64_t i = 0; i < p.after; ++i) {
      const double* from = in + (k * p.radix * p.after + i) * element;
      double* to = out + (k * p.after + i) * element;
      const auto x = [=](std::int64_t j) HWY_ATTR { return C::load(from + j * from_step); };
      const auto y = [=](std::int64_t j, const C& value) HWY_ATTR {
        if (j == 0 || i == 0) {
          value.store(to + j * to_step);
        } else {
          (value * twiddles[j * p.after + i]).store(to + j * to_step);
        }
      };
      butterfly(x, y);
    }
  }
}

// An odd radix by its definition: the elements j and radix - j share their factors.
template <class D>
HWY_INLINE void RunOddPass(const FftPass& p, const Number* twiddles, const Number* roots,
                           const double* in, double* out) {
  using C = Complex<D>;
  constexpr std::int64_t kMax = 31;
  const std::int64_t half = p.radix / 2;
  RunPass<D>(p, twiddles, in, out, [=](auto x, auto y) HWY_ATTR {
    C sums[kMax], differences[kMax];
    const C first = x(0);
    C all = first;
    for (std::int64_t j = 1; j <= half; ++j) {
      const C a = x(j), b = x(p.radix - j);
      sums[j] = a + b;
      differences[j] = a - b;
      all = all + sums[j];
    }
    y(0, all);
    for (std::int64_t q = 1; q <= half; ++q) {
      C even = first, odd = differences[1].times(-roots[q].imag());
      even = even.plus(sums[1], roots[q].real());
      for (std::int64_t j = 2, at = q; j <= half; ++j) {
        at += q;
        if (at >= p.radix) at -= p.radix;
        even = even.plus(sums[j], roots[at].real());
        odd = odd.plus(differences[j], -roots[at].imag());
      }
      const C turned = odd.times_minus_i();
      y(q, even + turned);
      y(p.radix - q, even - turned);
    }
  });
}

template <class D>
double* RunPasses(const FftPlan& plan, double* a, double* b) {
  using C = Complex<D>;
  for (const FftPass& p : plan.passes) {
    const Number* twiddles = plan.numbers.data() + p.twiddles;
    switch (p.radix) {
      case 2:
        RunPass<D>(p, twiddles, a, b, [](auto x, auto y) HWY_ATTR {
          const C first = x(0), second = x(1);
          y(0, first + second);
          y(1, first - second);
        });
        break;
      case 3:
        RunPass<D>(p, twiddles, a, b, [](auto x, auto y) HWY_ATTR {
          const C first = x(0), second = x(1), third = x(2);
          const C sum = second + third;
          const C middle = first.plus(sum, -0.5);
          const C turned = (second - third).times(0.86602540378443864676).times_minus_i();
          y(0, first + sum);
          y(1, middle + turned);
          y(2, middle - turned);
        });
        break;
      case 4:
        RunPass<D>(p, twiddles, a, b, [](auto x, auto y) HWY_ATTR {
          const C x0 = x(0), x1 = x(1), x2 = x(2), x3 = x(3);
          const C even = x0 + x2, odd = x1 + x3;
          const C low = x0 - x2, turned = (x1 - x3).times_minus_i();
          y(0, even + odd);
          y(1, low + turned);
          y(2, even - odd);
          y(3, low - turned);
        });
        break;
      case 5:
        RunPass<D>(p, twiddles, a, b, [](auto x, auto y) HWY_ATTR {
          constexpr double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
          constexpr double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
          const C x0 = x(0), x1 = x(1), x2 = x(2), x3 = x(3), x4 = x(4);
          const C sum1 = x1 + x4, sum2 = x2 + x3, less1 = x1 - x4, less2 = x2 - x3;
          const C even1 = x0.plus(sum1, c1).plus(sum2, c2);
          const C even2 = x0.plus(sum1, c2).plus(sum2, c1);
          const C odd1 = less1.times(s1).plus(less2, s2).times_minus_i();
          const C odd2 = less1.times(s2).plus(less2, -s1).times_minus_i();
          y(0, x0 + sum1 + sum2);
          y(1, even1 + odd1);
          y(2, even2 + odd2);
          y(3, even2 - odd2);
          y(4, even1 - odd1);
        });
        break;
      default: RunOddPass<D>(p, twiddles, plan.numbers.data() + p.roots, a, b);
    }
    std::swap(a, b);
  }
  return a;
}

template <class D>
double* Run(const FftPlan& plan, double* a, double* b) {
  if (!plan.convolution) return RunPasses<D>(plan, a, b);
  using C = Complex<D>;
  const auto element = static_cast<std::int64_t>(2 * hn::Lanes(D()));
  const std::int64_t n = plan.n, m = plan.convolution->n;
  for (std::int64_t k = 0; k < n; ++k) {
    (C::load(a + k * element) * plan.chirp[static_cast<std::size_t>(k)]).store(a + k * element);
  }
  for (std::int64_t k = n * element; k < m * element; ++k) a[k] = 0;
  double* x = RunPasses<D>(*plan.convolution, a, b);
  for (std::int64_t k = 0; k < m; ++k) {
    const C product = C::load(x + k * element) * plan.filter[static_cast<std::size_t>(k)];
    product.swapped().store(x + k * element);
  }
  x = RunPasses<D>(*plan.convolution, x, x == a ? b : a);
  for (std::int64_t k = 0; k < n; ++k) {
    const C value = C::load(x + k * element).swapped();
    (value * plan.chirp[static_cast<std::size_t>(k)]).store(x + k * element);
  }
  return x;
}

double* RunLanes(const FftPlan& plan, double* a, double* b) { return Run<Lanes>(plan, a, b); }
double* RunOne(const FftPlan& plan, double* a, double* b) { return Run<One>(plan, a, b); }
std::int64_t CountLanes() { return static_cast<std::int64_t>(hn::Lanes(Lanes())); }

template <class D>
HWY_INLINE void Split(std::int64_t n, const Number* roots, const double* pairs, double* out) {
  using C = Complex<D>;
  const auto element = static_cast<std::int64_t>(2 * hn::Lanes(D()));
  const std::int64_t half = n / 2;
  for (std::int64_t k = 0; k <= half; ++k) {
    const C a = C::load(pairs + (k == half ? 0 : k) * element);
    const C b = C::load(pairs + (k == 0 ? 0 : half - k) * element).conj();
    const C odd = ((a - b) * roots[k]).times_minus_i();
    (a + b + odd).times(0.5).store(out + k * element);
  }
}

template <class D>
HWY_INLINE void Merge(std::int64_t n, const Number* roots, const double* in, double* pairs) {
  using C = Complex<D>;
  const auto element = static_cast<std::int64_t>(2 * hn::Lanes(D()));
  const std::int64_t half = n / 2;
  for (std::int64_t k = 0; k < half; ++k) {
    const C a = C::load(in + k * element), b = C::load(in + (half - k) * element).conj();
    const C odd = ((a - b) * std::conj(roots[k])).times_minus_i();
    (a + b - odd).swapped().store(pairs + k * element);
  }
}

void SplitLanes(std::int64_t n, const Number* roots, const double* pairs, double* out) {
  Split<Lanes>(n, roots, pairs, out);
}
void SplitOne(std::int64_t n, const Number* roots, const double* pairs, double* out) {
  Split<One>(n, roots, pairs, out);
}
void MergeLanes(std::int64_t n, const Number* roots, const double* in, double* pairs) {
  Merge<Lanes>(n, roots, in, pairs);
}
void MergeOne(std::int64_t n, const Number* roots, const double* in, double* pairs) {
  Merge<One>(n, roots, in, pairs);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(RunLanes);
HWY_EXPORT(RunOne);
HWY_EXPORT(CountLanes);
HWY_EXPORT(SplitLanes);
HWY_EXPORT(SplitOne);
HWY_EXPORT(MergeLanes);
HWY_EXPORT(MergeOne);

std::int64_t fft_lanes() { return HWY_DYNAMIC_DISPATCH(CountLanes)(); }
double* fft_run(const FftPlan& plan, double* a, double* b) {
  return HWY_DYNAMIC_DISPATCH(RunLanes)(plan, a, b);
}
double* fft_run_one(const FftPlan& plan, double* a, double* b) {
  return HWY_DYNAMIC_DISPATCH(RunOne)(plan, a, b);
}
void fft_split(std::int64_t n, const std::complex<double>* half_roots, std::int64_t lanes,
               const double* pairs, double* out) {
  if (lanes == 1) return HWY_DYNAMIC_DISPATCH(SplitOne)(n, half_roots, pairs, out);
  HWY_DYNAMIC_DISPATCH(SplitLanes)(n, half_roots, pairs, out);
}
void fft_merge(std::int64_t n, const std::complex<double>* half_roots, std::int64_t lanes,
               const double* in, double* pairs) {
  if (lanes == 1) return HWY_DYNAMIC_DISPATCH(MergeOne)(n, half_roots, in, pairs);
  HWY_DYNAMIC_DISPATCH(MergeLanes)(n, half_roots, in, pairs);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
