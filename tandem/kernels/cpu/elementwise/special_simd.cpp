// Special functions in vectors: Erfinv and Ndtri of float and double, others of float alone,
// calculated in double (half and bfloat16 through float).

#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

#include "tandem/kernels/cpu/elementwise/elementwise.h"
#include "tandem/kernels/cpu/elementwise/special.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/special_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_circular-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

#ifndef TANDEM_KERNELS_CPU_SPECIAL_SIMD
#define TANDEM_KERNELS_CPU_SPECIAL_SIMD
namespace tandem::cpu {
namespace {

struct SpecialTables {
  UnaryOp erfinv, ndtri, lgamma, digamma, i0, i0e, i1, i1e;
  BinaryOp zeta, polygamma;
};

}  // namespace
}  // namespace tandem::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- The quantile of the normal distribution ----

// Evaluates polynomials whose lowest power comes first.
template <class D, class V, int n>
HWY_INLINE V Quotient(D d, V x, const double (&top)[n], const double (&bottom)[n]) {
  auto t = hn::Set(d, top[n - 1]), b = hn::Set(d, bottom[n - 1]);
  for (int i = n - 2; i >= 0; --i) {
    t = hn::MulAdd(t, x, hn::Set(d, top[i]));
    b = hn::MulAdd(b, x, hn::Set(d, bottom[i]));
  }
  return hn::Div(t, b);
}

// The z with normal distribution function 1/2 + q, where `tail` is min(p, 1 - p).
template <class D, class V>
HWY_INLINE V NormalQuantile(D d, V q, V tail) {
  using namespace normal_quantile_polynomials;
  const auto near = hn::NegMulAdd(q, q, hn::Set(d, 0.180625));
  const auto centre = hn::Mul(q, Quotient(d, near, kCentreTop, kCentreBottom));
  const auto is_centre = hn::Le(hn::Abs(q), hn::Set(d, 0.425));
  if (hn::AllTrue(d, is_centre)) return centre;
  const auto r = hn::Sqrt(hn::Neg(Log(d, tail)));
  auto z = Quotient(d, hn::Sub(r, hn::Set(d, 1.6)), kMiddleTop, kMiddleBottom);
  const auto is_far = hn::Gt(r, hn::Set(d, 5.0));
  if (!hn::AllFalse(d, is_far)) {
    const auto far = Quotient(d, hn::Sub(r, hn::Set(d, 5.0)), kFarTop, kFarBottom);
    z = hn::IfThenElse(is_far, far, z);
    z = hn::IfThenElse(hn::Eq(tail, hn::Zero(d)), hn::Set(d, kInfinity), z);
  }
  return hn::IfThenElse(is_centre, centre, hn::CopySignToAbs(z, q));
}

struct NdtriOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V p) const {
    const auto half = hn::Set(d, 0.5);
    const auto rest = hn::Sub(hn::Set(d, 1.0), p);
    return NormalQuantile(d, hn::Sub(p, half), hn::IfThenElse(hn::Lt(p, half), p, rest));
  }
};
struct ErfinvOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V y) const {
    const auto half = hn::Set(d, 0.5);
    const auto tail = hn::Mul(hn::Sub(hn::Set(d, 1.0), hn::Abs(y)), half);
    return hn::Mul(NormalQuantile(d, hn::Mul(y, half), tail), hn::Set(d, 1 / std::numbers::sqrt2));
  }
};

// ---- Gamma's logarithm and its derivative ----

// Sine and cosine of pi a / 2 less whole turns of pi.
template <class D, class V>
HWY_INLINE SineAndCosine<D> HalfTurns(D d, V a) {
  const auto part = hn::Sub(a, hn::Round(a));
  return OfReduced(d, Quarters<D>{hn::Mul(part, hn::Set(d, std::numbers::pi / 2)), hn::Zero(d),
                                  hn::Zero(hn::RebindToSigned<D>())});
}

// By reflection for x < 0, recurrence up to 8, and Stirling's series from there on.
struct LgammaOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr double kSeries[] = {1.0 / 156,  -691.0 / 360360, 1.0 / 1188, -1.0 / 1680,
                                  1.0 / 1260, -1.0 / 360,      1.0 / 12};
    const auto one = hn::Set(d, 1.0);
    const auto a = Limit(d, hn::Abs(x), 0.0, 1e300);
    auto product = a;
    for (int i = 1; i < 8; ++i) product = hn::Mul(product, hn::Add(a, hn::Set(d, i)));
    const auto is_small = hn::Lt(a, hn::Set(d, 8.0));
    product = hn::IfThenElse(is_small, product, one);
    const auto b = hn::IfThenElse(is_small, hn::Add(a, hn::Set(d, 8.0)), a);
    const auto inverse = hn::Div(one, b);
    auto series = hn::Mul(inverse, Polynomial(d, hn::Mul(inverse, inverse), kSeries));
    series = hn::Add(series, hn::Sub(hn::Set(d, 0.91893853320467274178), b));
    series = hn::MulAdd(hn::Sub(b, hn::Set(d, 0.5)), Log(d, b), series);

    const auto negative = hn::Lt(x, hn::Zero(d));
    auto factor = product;
    if (!hn::AllFalse(d, negative)) {
      const auto of = HalfTurns(d, a);
      const auto sine = hn::Mul(hn::Abs(of.sin), hn::Mul(of.cos, hn::Set(d, 2.0)));
      const auto reflected =
          hn::Div(hn::Mul(product, hn::Set(d, std::numbers::pi)), hn::Mul(a, sine));
      factor = hn::IfThenElse(negative, reflected, factor);
    }
    const auto y = hn::Sub(series, Log(d, factor));
    const auto zero = hn::Or(hn::Eq(x, one), hn::Eq(x, hn::Set(d, 2.0)));
    return hn::IfThenZeroElse(zero, hn::IfThenElse(negative, hn::Neg(y), y));
  }
};

struct DigammaOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr double kSeries[] = {1.0 / 12,  -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                  1.0 / 252, -1.0 / 120,     1.0 / 12};
    const auto zero = hn::Zero(d), one = hn::Set(d, 1.0);
    const auto reflects = hn::Le(x, zero);
    const auto a = hn::IfThenElse(reflects, hn::Sub(one, x), x);
    // The sum of 1 / (a + i) as one fraction.
    auto top = zero, bottom = one;
    for (int i = 0; i < 8; ++i) {
      const auto next = hn::Add(a, hn::Set(d, i));
      top = hn::MulAdd(top, next, bottom);
      bottom = hn::Mul(bottom, next);
    }
    const auto is_small = hn::Lt(a, hn::Set(d, 8.0));
    const auto b = hn::IfThenElse(is_small, hn::Add(a, hn::Set(d, 8.0)), a);
    const auto inverse = hn::Div(one, b);
    const auto s = hn::Mul(inverse, inverse);
    const auto series = hn::MulAdd(s, Polynomial(d, s, kSeries), hn::Mul(inverse, hn::Set(d, 0.5)));
    auto y = hn::Sub(Log(d, b), series);
    y = hn::Sub(y, hn::IfThenElseZero(is_small, hn::Div(top, bottom)));
    if (hn::AllFalse(d, reflects)) return y;
    // pi / tan(pi x); at the poles and -infinity there is no value.
    const auto of = HalfTurns(d, x);
    const auto cosine = hn::Mul(hn::Sub(of.cos, of.sin), hn::Add(of.cos, of.sin));
    const auto sine = hn::Mul(hn::Mul(of.sin, of.cos), hn::Set(d, 2.0 / std::numbers::pi));
    const auto pole = hn::Eq(hn::Floor(x), x);
    const auto nan = hn::Set(d, std::numeric_limits<double>::quiet_NaN());
    const auto reflected = hn::IfThenElse(pole, nan, hn::Sub(y, hn::Div(cosine, sine)));
    return hn::IfThenElse(reflects, reflected, y);
  }
};

// ---- Modified Bessel functions of the first kind times exp(-a), for a >= 0 ----

// Minimax fits of our own: up to 8 in a, beyond in 8 / a of the function times sqrt(a), both moved
// to [-1, 1]. Highest power first; near 0 that of order 1 is divided by a.
struct Order0 {
  static constexpr double kNear[] = {
      -1.759785069954137e-5,  5.068886035595071e-5,    -4.3655598407013276e-5,
      9.518388862204965e-5,   -0.00041364849174615838, 0.00095122161236896314,
      -0.0017855480174779857, 0.0035356610109526711,   -0.0068067515245247006,
      0.012004525154911538,   -0.019677661587951901,   0.030162434651302316,
      -0.042987028340051157,  0.056780378341462118,    -0.069541059988312735,
      0.079274805058138246,   -0.084963389642113898,   0.087343443258959996,
      -0.089043441142185568,  0.09451562786144764,     -0.11300432688710903,
      0.20700192122679159};
  static constexpr double kFar[] = {
      -7.6044766281194821e-9, 1.4299052612198226e-9, 4.8705269932422802e-8, 1.0581912143444269e-7,
      2.9454355258644654e-7,  1.4779039317130925e-6, 1.114335783616667e-5,  0.0001362168064095406,
      0.0033605519772923566,  0.40217650943041037};
};
struct Order1 {
  static constexpr double kNear[] = {
      -2.0274767910327179e-6,  6.1491566947053948e-6,  -6.8233955222491196e-6,
      1.6775533101068138e-5,   -6.4661036732178593e-5, 0.00015890308228523358,
      -0.00033841053983674271, 0.00073553884406521224, -0.0015403788211572757,
      0.0030106499661838835,   -0.0055340450978877975, 0.0095822621868084597,
      -0.015571422109387723,   0.023686384207698476,   -0.033671341339986493,
      0.044674526459507511,    -0.055280040139056296,  0.063767406683066182,
      -0.068482606182984769,   0.068057599835128693,   -0.061124338029760709,
      0.044687709875916315};
  static constexpr double kFar[] = {7.8055442857161952e-9,  -2.3366532025618314e-9,
                                    -5.3310698089500091e-8, -1.180581934125939e-7,
                                    -3.4530445206404697e-7, -1.8286126404951485e-6,
                                    -1.5038903140823282e-5, -0.00021923654075302202,
                                    -0.0097495771862269201, 0.38939845904137051};
};

template <class Order, class D, class V>
HWY_INLINE V ScaledI(D d, V a) {
  const auto one = hn::Set(d, 1.0), eight = hn::Set(d, 8.0);
  auto near = Polynomial(d, hn::MulSub(a, hn::Set(d, 0.25), one), Order::kNear);
  if constexpr (std::is_same_v<Order, Order1>) near = hn::Mul(near, a);
  const auto is_far = hn::Gt(a, eight);
  if (hn::AllFalse(d, is_far)) return near;
  const auto s = hn::Sub(hn::Div(hn::Set(d, 16.0), a), one);
  return hn::IfThenElse(is_far, hn::Div(Polynomial(d, s, Order::kFar), hn::Sqrt(a)), near);
}

template <class Order, bool scaled>
struct BesselI {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    auto a = hn::Abs(x);
    if constexpr (!scaled) a = Limit(d, a, 0.0, 500.0);  // beyond, the result is infinite
    auto y = ScaledI<Order>(d, a);
    if constexpr (!scaled) y = hn::Mul(y, Exp(d, a));
    if constexpr (std::is_same_v<Order, Order1>) y = hn::CopySignToAbs(y, x);
    return y;
  }
};

// ---- Zeta and polygamma ----

// By the formula of Euler and Maclaurin, for what it converges for quickly.
template <class D, class V>
HWY_INLINE V ZetaOfOrdinary(D d, V x, V q) {
  auto sum = hn::Zero(d), term = sum, last = q;
  for (int i = 0; i < 10; ++i) {
    last = hn::Add(q, hn::Set(d, i));
    term = Exp(d, hn::Neg(hn::Mul(x, Log(d, last))));
    sum = hn::Add(sum, term);
  }
  const auto one = hn::Set(d, 1.0);
  sum = hn::Add(sum, hn::Mul(term, hn::Sub(hn::Div(last, hn::Sub(x, one)), hn::Set(d, 0.5))));
  const auto inverse = hn::Div(one, last);
  const auto step = hn::Mul(inverse, inverse);
  auto power = hn::Mul(hn::Mul(term, inverse), x);
  for (int i = 0; i < static_cast<int>(std::size(kZetaDivisors)); ++i) {
    sum = hn::MulAdd(power, hn::Set(d, 1 / kZetaDivisors[i]), sum);
    const auto next = hn::Add(x, hn::Set(d, 2 * i + 1));
    power = hn::Mul(hn::Mul(power, step), hn::Mul(next, hn::Add(next, one)));
  }
  return sum;
}

// y where `ordinary`, else the function of numbers.
template <class D, class V, class M>
HWY_INLINE V OrNumbers(D d, V x, V q, V y, M ordinary, double (*f)(double, double)) {
  if (HWY_LIKELY(hn::AllTrue(d, ordinary))) return y;
  HWY_ALIGN double xs[hn::MaxLanes(d)];
  HWY_ALIGN double qs[hn::MaxLanes(d)];
  HWY_ALIGN double ys[hn::MaxLanes(d)];
  HWY_ALIGN double is[hn::MaxLanes(d)];
  hn::Store(x, d, xs);
  hn::Store(q, d, qs);
  hn::Store(y, d, ys);
  hn::Store(hn::IfThenElseZero(ordinary, hn::Set(d, 1.0)), d, is);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (is[i] == 0) ys[i] = f(xs[i], qs[i]);
  }
  return hn::Load(d, ys);
}
template <class D, class V>
HWY_INLINE auto IsOrdinary(D d, V x, V q) {
  const auto order = hn::And(hn::Gt(x, hn::Set(d, 1.0)), hn::Lt(x, hn::Set(d, 30.0)));
  return hn::And(order, hn::And(hn::Gt(q, hn::Set(d, 1e-8)), hn::Lt(q, hn::Set(d, 1e8))));
}

struct ZetaOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V q) const {
    return OrNumbers(d, x, q, ZetaOfOrdinary(d, x, q), IsOrdinary(d, x, q), zeta);
  }
};

// The polygamma function of order n: zeta(n + 1, x) n! with a sign. The factorials of small orders
// are a table's, by lanes.
struct PolygammaOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V n, V x) const {
    const auto s = hn::Add(n, hn::Set(d, 1.0));
    const auto ordinary = hn::And(IsOrdinary(d, s, x), hn::Eq(n, hn::Floor(n)));
    HWY_ALIGN double factors[hn::MaxLanes(d)];
    hn::Store(hn::IfThenElseZero(ordinary, n), d, factors);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
      const int order = static_cast<int>(factors[i]);
      double product = order % 2 == 0 ? -1 : 1;
      for (int k = 2; k <= order; ++k) product *= k;
      factors[i] = product;
    }
    const auto y = hn::Mul(hn::Load(d, factors), ZetaOfOrdinary(d, s, x));
    return OrNumbers(d, n, x, y, ordinary, polygamma);
  }
};

template <class F>
constexpr UnaryOp unary(double cost, bool of_double = false) {
  UnaryOp op;
  op.cost = cost;
  op.set(DType::kFloat, UnaryInDouble<F>);
  if (of_double) op.set(DType::kDouble, Unary<F, double>);
  return op;
}
template <class F>
constexpr BinaryOp binary(double cost) {
  BinaryOp op;
  op.cost = cost;
  op.set(DType::kFloat, BinaryInDouble<F>);
  return op.without_float16();
}

constexpr SpecialTables kTable{
    .erfinv = unary<ErfinvOf>(4, true),
    .ndtri = unary<NdtriOf>(4, true),
    .lgamma = unary<LgammaOf>(5),
    .digamma = unary<DigammaOf>(4),
    .i0 = unary<BesselI<Order0, false>>(4),
    .i0e = unary<BesselI<Order0, true>>(3),
    .i1 = unary<BesselI<Order1, false>>(4),
    .i1e = unary<BesselI<Order1, true>>(3),
    .zeta = binary<ZetaOf>(40),
    .polygamma = binary<PolygammaOf>(45),
};

}  // namespace

const SpecialTables* VectorSpecial() { return &kTable; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {
namespace {

HWY_EXPORT(VectorSpecial);

constexpr DTypeSet kThroughFloat{DType::kHalf, DType::kBFloat16, DType::kFloat};

template <auto member>
constexpr KernelDecl vectors(const char* op, DTypeSet types) {
  KernelDecl decl{.op = op, .name = "vectors"};
  decl.float_loops = [] { return float_loops(HWY_DYNAMIC_DISPATCH(VectorSpecial)()->*member); };
  decl.types[0] = {"T", types};
  decl.priority = 10;
  decl.run = [](KernelContext& c) {
    const auto& loops = HWY_DYNAMIC_DISPATCH(VectorSpecial)()->*member;
    if constexpr (std::is_same_v<std::decay_t<decltype(loops)>, UnaryOp>) {
      run_unary(c, loops);
    } else {
      run_binary(c, loops);
    }
  };
  return decl;
}

const KernelRegistration kKernels[] = {
    KernelRegistration(vectors<&SpecialTables::erfinv>("Erfinv", kFloatTypes)),
    KernelRegistration(vectors<&SpecialTables::ndtri>("Ndtri", kFloatTypes)),
    KernelRegistration(vectors<&SpecialTables::lgamma>("Lgamma", kThroughFloat)),
    KernelRegistration(vectors<&SpecialTables::digamma>("Digamma", kThroughFloat)),
    KernelRegistration(vectors<&SpecialTables::i0>("BesselI0", kThroughFloat)),
    KernelRegistration(vectors<&SpecialTables::i0e>("BesselI0e", kThroughFloat)),
    KernelRegistration(vectors<&SpecialTables::i1>("BesselI1", kThroughFloat)),
    KernelRegistration(vectors<&SpecialTables::i1e>("BesselI1e", kThroughFloat)),
    KernelRegistration(vectors<&SpecialTables::zeta>("Zeta", {DType::kFloat})),
    KernelRegistration(vectors<&SpecialTables::polygamma>("Polygamma", {DType::kFloat})),
};

}  // namespace
}  // namespace tandem::cpu
#endif
