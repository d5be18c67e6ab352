// Sin, Cos, Tan, Asin, Acos, Atan and Atan2 of float and double (half and bfloat16 through float),
// in vectors.

#include "tandem/kernels/cpu/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/circular_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_circular-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"

#ifndef TANDEM_KERNELS_CPU_CIRCULAR_SIMD
#define TANDEM_KERNELS_CPU_CIRCULAR_SIMD
namespace tandem::cpu {
namespace {

struct CircularTables {
  UnaryOp sin, cos, tan, asin, acos, atan;
  BinaryOp atan2;
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
#define TANDEM_PERIODIC_FUNCTION(NAME)        \
  template <bool of_float>                    \
  struct NAME##Of {                           \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      return NAME<of_float>(d, x);            \
    }                                         \
  }
TANDEM_PERIODIC_FUNCTION(Sin);
TANDEM_PERIODIC_FUNCTION(Cos);
TANDEM_PERIODIC_FUNCTION(Tan);
TANDEM_VECTOR_FUNCTION(Asin);
TANDEM_VECTOR_FUNCTION(Acos);
TANDEM_VECTOR_FUNCTION(Atan);
#undef TANDEM_VECTOR_FUNCTION
#undef TANDEM_PERIODIC_FUNCTION
struct Atan2Of {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V y, V x) const {
    return Atan2(d, y, x);
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
// Float in double: the reduction by multiples of pi / 2 needs its digits.
template <template <bool> class F>
constexpr UnaryOp periodic(double cost) {
  return table<UnaryLoop>(UnaryInDouble<F<true>>, Unary<F<false>, double>, cost);
}
template <class F>
constexpr UnaryOp inverse(double cost) {
  return table<UnaryLoop>(Unary<F, float>, Unary<F, double>, cost);
}

constexpr CircularTables kTable{
    .sin = periodic<SinOf>(1.5),
    .cos = periodic<CosOf>(1.5),
    .tan = periodic<TanOf>(2.0),
    .asin = inverse<AsinOf>(0.8),
    .acos = inverse<AcosOf>(0.8),
    .atan = inverse<AtanOf>(0.8),
    .atan2 = table<BinaryLoop>(Binary<Atan2Of, float>, Binary<Atan2Of, double>, 1.2),
};

}  // namespace

const CircularTables* VectorCircular() { return &kTable; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {
namespace {

HWY_EXPORT(VectorCircular);

template <auto member>
constexpr KernelDecl vectors(const char* op) {
  KernelDecl decl{.op = op, .name = "vectors"};
  decl.float_loops = [] { return float_loops(HWY_DYNAMIC_DISPATCH(VectorCircular)()->*member); };
  decl.types[0] = {"T", kFloatTypes};
  decl.priority = 10;
  decl.run = [](KernelContext& c) {
    const auto& loops = HWY_DYNAMIC_DISPATCH(VectorCircular)()->*member;
    if constexpr (std::is_same_v<std::decay_t<decltype(loops)>, UnaryOp>) {
      run_unary(c, loops);
    } else {
      run_binary(c, loops);
    }
  };
  return decl;
}

const KernelRegistration kKernels[] = {
    KernelRegistration(vectors<&CircularTables::sin>("Sin")),
    KernelRegistration(vectors<&CircularTables::cos>("Cos")),
    KernelRegistration(vectors<&CircularTables::tan>("Tan")),
    KernelRegistration(vectors<&CircularTables::asin>("Asin")),
    KernelRegistration(vectors<&CircularTables::acos>("Acos")),
    KernelRegistration(vectors<&CircularTables::atan>("Atan")),
    KernelRegistration(vectors<&CircularTables::atan2>("Atan2")),
};

}  // namespace
}  // namespace tandem::cpu
#endif
