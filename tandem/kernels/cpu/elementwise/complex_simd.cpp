// Division and exponentials of complex64 in vectors, calculated in double, whose range holds the
// squares of all floats.

#include <complex>

#include "tandem/kernels/cpu/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/complex_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_circular-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

#ifndef TANDEM_KERNELS_CPU_COMPLEX_SIMD
#define TANDEM_KERNELS_CPU_COMPLEX_SIMD
namespace tandem::cpu {
namespace {

using Complex = std::complex<float>;
struct ComplexTables {
  UnaryOp exp;
  BinaryOp div;
};

}  // namespace
}  // namespace tandem::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

// A pair of vectors holds as many complex numbers as a vector has doubles, and how they are read
// and written.
template <class D>
struct ComplexVector {
  hn::Vec<D> re, im;
};
template <class D>
HWY_INLINE ComplexVector<D> LoadComplex(D d, const Complex* from) {
  const hn::Rebind<float, D> narrow;
  hn::Vec<decltype(narrow)> re, im;
  hn::LoadInterleaved2(narrow, reinterpret_cast<const float*>(from), re, im);
  return {hn::PromoteTo(d, re), hn::PromoteTo(d, im)};
}
// Whether all parts are numbers.
template <class D>
HWY_INLINE bool StoreComplex(D d, ComplexVector<D> v, Complex* to) {
  const hn::Rebind<float, D> narrow;
  const auto re = hn::DemoteTo(narrow, v.re), im = hn::DemoteTo(narrow, v.im);
  hn::StoreInterleaved2(re, im, narrow, reinterpret_cast<float*>(to));
  return hn::AllTrue(d, hn::And(hn::Eq(v.re, v.re), hn::Eq(v.im, v.im)));
}

bool IsNumber(Complex v) { return v.real() == v.real() && v.imag() == v.imag(); }

struct DivOf {
  template <class D, class V = ComplexVector<D>>
  HWY_INLINE V operator()(D d, V x, V y) const {
    const auto norm = hn::MulAdd(y.re, y.re, hn::Mul(y.im, y.im));
    const auto inverse = hn::Div(hn::Set(d, 1.0), norm);
    const auto re = hn::MulAdd(x.re, y.re, hn::Mul(x.im, y.im));
    const auto im = hn::MulSub(x.im, y.re, hn::Mul(x.re, y.im));
    return {hn::Mul(re, inverse), hn::Mul(im, inverse)};
  }
  static Complex of(Complex x, Complex y) { return x / y; }
};

// Its second operand counts for nothing.
struct ExpOf {
  template <class D, class V = ComplexVector<D>>
  HWY_INLINE V operator()(D d, V x, V /*unused*/) const {
    const auto magnitude = Exp(d, x.re);
    return {hn::Mul(magnitude, Cos(d, x.im)), hn::Mul(magnitude, Sin(d, x.im))};
  }
  static Complex of(Complex x, Complex /*unused*/) { return std::exp(x); }
};

// Where a part of a result is NaN, infinities and zeros may be meant: the standard library knows.
template <class F>
void ComplexLoop(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar,
                 bool b_scalar, float /*parameter*/) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::size_t kMax = hn::MaxLanes(hn::ScalableTag<double>());
  const auto* const x = static_cast<const Complex*>(a);
  const auto* const y = static_cast<const Complex*>(b);
  auto* const to = static_cast<Complex*>(out);
  Complex xs[kMax], ys[kMax], results[kMax];
  const F f;
  const auto fill = [lanes](const Complex* from, bool scalar, std::int64_t m, Complex* block) {
    for (std::int64_t k = 0; k < lanes; ++k) {
      block[k] = scalar ? *from : k < m ? from[k] : Complex(1);
    }
  };
  if (a_scalar) fill(x, true, 0, xs);
  if (b_scalar) fill(y, true, 0, ys);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const std::int64_t m = n - i < lanes ? n - i : lanes;
    if (m < lanes && !a_scalar) fill(x + i, false, m, xs);
    if (m < lanes && !b_scalar) fill(y + i, false, m, ys);
    const Complex* const u = m < lanes || a_scalar ? xs : x + i;
    const Complex* const v = m < lanes || b_scalar ? ys : y + i;
    if (!StoreComplex(d, f(d, LoadComplex(d, u), LoadComplex(d, v)), results)) {
      for (std::int64_t k = 0; k < m; ++k) {
        if (!IsNumber(results[k])) results[k] = F::of(u[k], v[k]);
      }
    }
    for (std::int64_t k = 0; k < m; ++k) to[i + k] = results[k];
  }
}

void ExpLoop(const void* x, void* out, std::int64_t n, float parameter) {
  ComplexLoop<ExpOf>(x, x, out, n, false, false, parameter);
}

template <class Loop>
constexpr LoopTable<Loop> table(Loop loop, double cost) {
  LoopTable<Loop> op;
  op.cost = cost;
  op.set(DType::kComplex64, loop);
  return op;
}

constexpr ComplexTables kTable{
    .exp = table<UnaryLoop>(ExpLoop, 3.0),
    .div = table<BinaryLoop>(ComplexLoop<DivOf>, 1.5),
};

}  // namespace

const ComplexTables* VectorComplex() { return &kTable; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {
namespace {

HWY_EXPORT(VectorComplex);

void divide(KernelContext& c) { run_binary(c, HWY_DYNAMIC_DISPATCH(VectorComplex)()->div); }
void exponential(KernelContext& c) { run_unary(c, HWY_DYNAMIC_DISPATCH(VectorComplex)()->exp); }

constexpr KernelDecl vectors(const char* op, KernelFn run) {
  KernelDecl decl{.op = op, .name = "vectors"};
  decl.types[0] = {"T", {DType::kComplex64}};
  decl.priority = 10;
  decl.run = run;
  return decl;
}

const KernelRegistration kKernels[] = {
    KernelRegistration(vectors("RealDiv", divide)),
    KernelRegistration(vectors("Div", divide)),
    KernelRegistration(vectors("Exp", exponential)),
};

}  // namespace
}  // namespace tandem::cpu
#endif
