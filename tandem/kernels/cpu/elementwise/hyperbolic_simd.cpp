// Hyperbolic functions, their inverses, and products with logarithms, of float and double (half and
// bfloat16 through float), in vectors.

#include "tandem/kernels/cpu/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/hyperbolic_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_hyperbolic-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"

#ifndef TANDEM_KERNELS_CPU_HYPERBOLIC_SIMD
#define TANDEM_KERNELS_CPU_HYPERBOLIC_SIMD
namespace tandem::cpu {
namespace {

struct HyperbolicTables {
  UnaryOp sinh, cosh, asinh, acosh, atanh;
  BinaryOp xlogy, xlog1py;
};

}  // namespace
}  // namespace tandem::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

#define TANDEM_VECTOR_FUNCTION(NAME)          \
  struct NAME##Of {                           \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      return NAME(d, x);                      \
    }                                         \
  }
TANDEM_VECTOR_FUNCTION(Sinh);
TANDEM_VECTOR_FUNCTION(Cosh);
TANDEM_VECTOR_FUNCTION(Asinh);
TANDEM_VECTOR_FUNCTION(Acosh);
TANDEM_VECTOR_FUNCTION(Atanh);
#undef TANDEM_VECTOR_FUNCTION
// Nothing times anything is nothing.
struct XlogyOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)), hn::Mul(x, Log(d, y)));
  }
};
struct Xlog1pyOf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)), hn::Mul(x, Log1p(d, y)));
  }
};

template <class Loop>
constexpr LoopTable<Loop> table(Loop for_float, Loop for_double, double cost) {
  LoopTable<Loop> op;
  op.cost = cost;
  op.set(DType::kFloat, for_float);
  op.set(DType::kDouble, for_double);
  return op;
}
template <class F>
constexpr UnaryOp unary(double cost) {
  return table<UnaryLoop>(Unary<F, float>, Unary<F, double>, cost);
}
template <class F>
constexpr BinaryOp binary(double cost) {
  return table<BinaryLoop>(Binary<F, float>, Binary<F, double>, cost);
}

constexpr HyperbolicTables kTable{
    .sinh = unary<SinhOf>(1.0),
    .cosh = unary<CoshOf>(0.8),
    .asinh = unary<AsinhOf>(1.5),
    .acosh = unary<AcoshOf>(1.5),
    .atanh = unary<AtanhOf>(1.4),
    .xlogy = binary<XlogyOf>(0.9),
    .xlog1py = binary<Xlog1pyOf>(1.2),
};

}  // namespace

const HyperbolicTables* VectorHyperbolic() { return &kTable; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {
namespace {

HWY_EXPORT(VectorHyperbolic);

template <auto member>
constexpr KernelDecl vectors(const char* op) {
  KernelDecl decl{.op = op, .name = "vectors"};
  decl.float_loops = [] { return float_loops(HWY_DYNAMIC_DISPATCH(VectorHyperbolic)()->*member); };
  decl.types[0] = {"T", kFloatTypes};
  decl.priority = 10;
  decl.run = [](KernelContext& c) {
    const auto& loops = HWY_DYNAMIC_DISPATCH(VectorHyperbolic)()->*member;
    if constexpr (std::is_same_v<std::decay_t<decltype(loops)>, UnaryOp>) {
      run_unary(c, loops);
    } else {
      run_binary(c, loops);
    }
  };
  return decl;
}

const KernelRegistration kKernels[] = {
    KernelRegistration(vectors<&HyperbolicTables::sinh>("Sinh")),
    KernelRegistration(vectors<&HyperbolicTables::cosh>("Cosh")),
    KernelRegistration(vectors<&HyperbolicTables::asinh>("Asinh")),
    KernelRegistration(vectors<&HyperbolicTables::acosh>("Acosh")),
    KernelRegistration(vectors<&HyperbolicTables::atanh>("Atanh")),
    KernelRegistration(vectors<&HyperbolicTables::xlogy>("Xlogy")),
    KernelRegistration(vectors<&HyperbolicTables::xlog1py>("Xlog1py")),
};

}  // namespace
}  // namespace tandem::cpu
#endif
