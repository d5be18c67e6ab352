// Pow of float (half and bfloat16 through float) in vectors, calculated in double: an error of the
// logarithm grows with the exponent, but not as far as float can see.

#include <cmath>
#include <limits>

#include "tandem/kernels/cpu/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/power_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

struct PowOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    const auto a = hn::Abs(x), half = hn::Mul(y, hn::Set(d, 0.5));
    const auto magnitude = Exp(d, hn::Mul(y, Log(d, a)));
    const auto is_whole = hn::Eq(hn::Floor(y), y), is_even = hn::Eq(hn::Floor(half), half);
    const auto nan = hn::Set(d, std::numeric_limits<double>::quiet_NaN());
    const auto of_negative =
        hn::IfThenElse(is_even, magnitude, hn::IfThenElse(is_whole, hn::Neg(magnitude), nan));
    const auto result = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), of_negative, magnitude);

    // Zeros, infinities and NaN are left to the standard library.
    const auto most = hn::Set(d, 1e39);
    const auto ordinary =
        hn::And(hn::And(hn::Gt(a, hn::Zero(d)), hn::Lt(a, most)), hn::Lt(hn::Abs(y), most));
    if (HWY_LIKELY(hn::AllTrue(d, ordinary))) return result;
    HWY_ALIGN double xs[hn::MaxLanes(d)];
    HWY_ALIGN double ys[hn::MaxLanes(d)];
    HWY_ALIGN double results[hn::MaxLanes(d)];
    hn::Store(x, d, xs);
    hn::Store(y, d, ys);
    hn::Store(result, d, results);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
      const bool is_ordinary = xs[i] != 0 && std::fabs(xs[i]) < 1e39 && std::fabs(ys[i]) < 1e39;
      if (!is_ordinary) results[i] = std::pow(xs[i], ys[i]);
    }
    return hn::Load(d, results);
  }
};
struct CubeOf {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Mul(hn::Mul(x, x), x);
  }
};
struct SquareOf {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Mul(x, x);
  }
};

// Squares and cubes are most of what networks ask for, and cheap; rounded once, they are the same.
void Pow(const void* x, const void* y, void* out, std::int64_t n, bool x_scalar, bool y_scalar,
         float parameter) {
  const float exponent = y_scalar && !x_scalar ? *static_cast<const float*>(y) : 0;
  if (exponent == 2) return Unary<SquareOf, float>(x, out, n, parameter);
  if (exponent == 3) return UnaryInDouble<CubeOf>(x, out, n, parameter);
  BinaryInDouble<PowOf>(x, y, out, n, x_scalar, y_scalar, parameter);
}

constexpr BinaryOp table() {
  BinaryOp op;
  op.cost = 3;
  op.set(DType::kFloat, Pow);
  return op;
}
constexpr BinaryOp kTable = table();

}  // namespace

const BinaryOp* VectorPow() { return &kTable; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {
namespace {

HWY_EXPORT(VectorPow);

const KernelRegistration kPow{{
    .op = "Pow",
    .name = "vectors",
    .types = {{"T", {DType::kHalf, DType::kBFloat16, DType::kFloat}}},
    .priority = 10,
    .run = [](KernelContext& c) { run_binary(c, *HWY_DYNAMIC_DISPATCH(VectorPow)()); },
    .float_loops = [] { return float_loops(*HWY_DYNAMIC_DISPATCH(VectorPow)()); },
}};

}  // namespace
}  // namespace tandem::cpu
#endif
