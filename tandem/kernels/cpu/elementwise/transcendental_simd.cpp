// Exponentials, logarithms and what is made of them, of float and double (half and bfloat16 through
// float), in vectors.

#include "tandem/kernels/cpu/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/transcendental_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

#ifndef TANDEM_KERNELS_CPU_TRANSCENDENTAL_SIMD
#define TANDEM_KERNELS_CPU_TRANSCENDENTAL_SIMD
namespace tandem::cpu {
namespace {

struct MathTables {
  UnaryOp exp, expm1, log, log1p, tanh, sigmoid, erf, erfc;
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
TANDEM_VECTOR_FUNCTION(Exp);
TANDEM_VECTOR_FUNCTION(Expm1);
TANDEM_VECTOR_FUNCTION(Log);
TANDEM_VECTOR_FUNCTION(Log1p);
TANDEM_VECTOR_FUNCTION(Tanh);
TANDEM_VECTOR_FUNCTION(Sigmoid);
TANDEM_VECTOR_FUNCTION(Erf);
TANDEM_VECTOR_FUNCTION(Erfc);
#undef TANDEM_VECTOR_FUNCTION

template <class F, class... Ts>
constexpr UnaryOp unary(Types<Ts...>, double cost) {
  UnaryOp op;
  op.cost = cost;
  (op.set(dtype_of<Ts>, Unary<F, Ts>), ...);
  return op;
}

constexpr MathTables kTables{
    .exp = unary<ExpOf>(Types<float, double>{}, 0.6),
    .expm1 = unary<Expm1Of>(Types<float, double>{}, 0.7),
    .log = unary<LogOf>(Types<float, double>{}, 0.8),
    .log1p = unary<Log1pOf>(Types<float, double>{}, 1.0),
    .tanh = unary<TanhOf>(Types<float, double>{}, 0.9),
    .sigmoid = unary<SigmoidOf>(Types<float, double>{}, 0.8),
    .erf = unary<ErfOf>(Types<float, double>{}, 1.0),
    .erfc = unary<ErfcOf>(Types<float>{}, 1.2),
};

}  // namespace

const MathTables* VectorMath() { return &kTables; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {
namespace {

HWY_EXPORT(VectorMath);

template <auto member>
constexpr KernelDecl vectors(const char* op, DTypeSet types = kFloatTypes) {
  KernelDecl decl{.op = op, .name = "vectors"};
  decl.float_loops = [] { return float_loops(HWY_DYNAMIC_DISPATCH(VectorMath)()->*member); };
  decl.types[0] = {"T", types};
  decl.priority = 10;
  decl.run = [](KernelContext& c) { run_unary(c, HWY_DYNAMIC_DISPATCH(VectorMath)()->*member); };
  return decl;
}

const KernelRegistration kKernels[] = {
    KernelRegistration(vectors<&MathTables::exp>("Exp")),
    KernelRegistration(vectors<&MathTables::expm1>("Expm1")),
    KernelRegistration(vectors<&MathTables::log>("Log")),
    KernelRegistration(vectors<&MathTables::log1p>("Log1p")),
    KernelRegistration(vectors<&MathTables::tanh>("Tanh")),
    KernelRegistration(vectors<&MathTables::sigmoid>("Sigmoid")),
    KernelRegistration(vectors<&MathTables::erf>("Erf")),
    KernelRegistration(
        vectors<&MathTables::erfc>("Erfc", {DType::kHalf, DType::kBFloat16, DType::kFloat})),
};

}  // namespace
}  // namespace tandem::cpu
#endif
