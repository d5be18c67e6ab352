// Arithmetic, comparison and simple functions of float and double (half and bfloat16 through
// float), and of int32 and int64 where it is as easy, in vectors.

#include "tandem/kernels/cpu/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/arithmetic_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"

#ifndef TANDEM_KERNELS_CPU_ARITHMETIC_SIMD
#define TANDEM_KERNELS_CPU_ARITHMETIC_SIMD
namespace tandem::cpu {
namespace {

struct ArithmeticTables {
  BinaryOp add, sub, mul, div, div_no_nan, mul_no_nan, xdivy, maximum, minimum, squared_difference;
  BinaryOp tanh_grad, sigmoid_grad;
  BinaryOp equal, not_equal, less, less_equal, greater, greater_equal;
  BinaryOp logical_and, logical_or;
  UnaryOp neg, abs, sign, square, sqrt, rsqrt, reciprocal, floor, ceil, round;
};

}  // namespace
}  // namespace tandem::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

#define TANDEM_VECTOR_BINARY(NAME, EXPRESSION)                         \
  struct NAME {                                                        \
    template <class D, class V>                                        \
    HWY_INLINE auto operator()([[maybe_unused]] D d, V x, V y) const { \
      return EXPRESSION;                                               \
    }                                                                  \
  }
#define TANDEM_VECTOR_UNARY(NAME, EXPRESSION)                  \
  struct NAME {                                                \
    template <class D, class V>                                \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x) const { \
      return EXPRESSION;                                       \
    }                                                          \
  }
TANDEM_VECTOR_BINARY(AddOf, hn::Add(x, y));
TANDEM_VECTOR_BINARY(SubOf, hn::Sub(x, y));
TANDEM_VECTOR_BINARY(MulOf, hn::Mul(x, y));
TANDEM_VECTOR_BINARY(DivOf, hn::Div(x, y));
TANDEM_VECTOR_BINARY(DivNoNanOf,
                     hn::IfThenElse(hn::Eq(y, hn::Zero(d)), hn::Zero(d), hn::Div(x, y)));
TANDEM_VECTOR_BINARY(MulNoNanOf, hn::IfThenZeroElse(hn::Eq(y, hn::Zero(d)), hn::Mul(x, y)));
TANDEM_VECTOR_BINARY(XdivyOf, hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)), hn::Div(x, y)));
// NaN from either side.
TANDEM_VECTOR_BINARY(MaximumOf, hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y));
TANDEM_VECTOR_BINARY(MinimumOf, hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(x)), x, y));
TANDEM_VECTOR_BINARY(IntegerMaximumOf, hn::Max(x, y));
TANDEM_VECTOR_BINARY(IntegerMinimumOf, hn::Min(x, y));
TANDEM_VECTOR_BINARY(SquaredDifferenceOf, hn::Mul(hn::Sub(x, y), hn::Sub(x, y)));
TANDEM_VECTOR_BINARY(TanhGradOf, hn::Mul(y, hn::NegMulAdd(x, x, hn::Set(d, 1))));
TANDEM_VECTOR_BINARY(SigmoidGradOf, hn::Mul(hn::Mul(y, x), hn::Sub(hn::Set(d, 1), x)));
TANDEM_VECTOR_BINARY(EqualOf, hn::Eq(x, y));
// Not Ne, which is false for NaN.
TANDEM_VECTOR_BINARY(NotEqualOf, hn::Not(hn::Eq(x, y)));
TANDEM_VECTOR_BINARY(LessOf, hn::Lt(x, y));
TANDEM_VECTOR_BINARY(GreaterOf, hn::Gt(x, y));
TANDEM_VECTOR_BINARY(LessEqualOf, hn::Le(x, y));
TANDEM_VECTOR_BINARY(GreaterEqualOf, hn::Ge(x, y));
TANDEM_VECTOR_BINARY(IntegerLessEqualOf, hn::Not(hn::Gt(x, y)));
TANDEM_VECTOR_BINARY(IntegerGreaterEqualOf, hn::Not(hn::Lt(x, y)));

TANDEM_VECTOR_UNARY(NegOf, hn::Neg(x));
TANDEM_VECTOR_UNARY(AbsOf, hn::Abs(x));
// x + 0 makes -0 into 0 and keeps NaN.
TANDEM_VECTOR_UNARY(SignOf, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1),
                                           hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, -1),
                                                          hn::Add(x, hn::Zero(d)))));
TANDEM_VECTOR_UNARY(SquareOf, hn::Mul(x, x));
TANDEM_VECTOR_UNARY(SqrtOf, hn::Sqrt(x));
TANDEM_VECTOR_UNARY(RsqrtOf, hn::Div(hn::Set(d, 1), hn::Sqrt(x)));
TANDEM_VECTOR_UNARY(ReciprocalOf, hn::Div(hn::Set(d, 1), x));
TANDEM_VECTOR_UNARY(FloorOf, hn::Floor(x));
TANDEM_VECTOR_UNARY(CeilOf, hn::Ceil(x));
TANDEM_VECTOR_UNARY(RoundOf, hn::Round(x));
// Bools that come from outside may hold any byte: all but 0 are true.
TANDEM_VECTOR_BINARY(LogicalAndOf, hn::And(hn::Min(x, hn::Set(d, 1)), hn::Min(y, hn::Set(d, 1))));
TANDEM_VECTOR_BINARY(LogicalOrOf, hn::Min(hn::Or(x, y), hn::Set(d, 1)));
#undef TANDEM_VECTOR_BINARY
#undef TANDEM_VECTOR_UNARY

template <class F, class... Ts>
constexpr BinaryOp binary(Types<Ts...>, double cost = 0.2) {
  BinaryOp op;
  op.cost = cost;
  (op.set(dtype_of<Ts>, Binary<F, Ts>), ...);
  return op;
}
template <class F, class... Ts>
constexpr BinaryOp compare(Types<Ts...>, double cost = 0.2) {
  BinaryOp op;
  op.cost = cost;
  (op.set(dtype_of<Ts>, Compare<F, Ts>), ...);
  return op;
}
template <class F, class... Ts>
constexpr UnaryOp unary(Types<Ts...>, double cost = 0.2) {
  UnaryOp op;
  op.cost = cost;
  (op.set(dtype_of<Ts>, Unary<F, Ts>), ...);
  return op;
}
template <class F>
constexpr BinaryOp logical() {
  BinaryOp op;
  op.cost = 0.05;
  op.set(DType::kBool, Binary<F, std::uint8_t>);
  return op;
}
constexpr BinaryOp both(BinaryOp of_floats, const BinaryOp& of_integers) {
  for (DType t : {DType::kInt32, DType::kInt64}) of_floats.set(t, of_integers.loop(t));
  return of_floats;
}

using Wide = Types<float, double>;
using Integers = Types<std::int32_t, std::int64_t>;
using All = Types<float, double, std::int32_t, std::int64_t>;

constexpr ArithmeticTables kTables{
    .add = binary<AddOf>(All{}),
    .sub = binary<SubOf>(All{}),
    .mul = binary<MulOf>(Types<float, double, std::int32_t>{}),
    .div = binary<DivOf>(Wide{}, 0.3),
    .div_no_nan = binary<DivNoNanOf>(Wide{}, 0.3),
    .mul_no_nan = binary<MulNoNanOf>(Wide{}),
    .xdivy = binary<XdivyOf>(Wide{}, 0.3),
    .maximum = both(binary<MaximumOf>(Wide{}), binary<IntegerMaximumOf>(Integers{})),
    .minimum = both(binary<MinimumOf>(Wide{}), binary<IntegerMinimumOf>(Integers{})),
    .squared_difference = binary<SquaredDifferenceOf>(Wide{}),
    .tanh_grad = binary<TanhGradOf>(Wide{}),
    .sigmoid_grad = binary<SigmoidGradOf>(Wide{}),
    .equal = compare<EqualOf>(All{}),
    .not_equal = compare<NotEqualOf>(All{}),
    .less = compare<LessOf>(All{}),
    .less_equal = both(compare<LessEqualOf>(Wide{}), compare<IntegerLessEqualOf>(Integers{})),
    .greater = compare<GreaterOf>(All{}),
    .greater_equal =
        both(compare<GreaterEqualOf>(Wide{}), compare<IntegerGreaterEqualOf>(Integers{})),
    .logical_and = logical<LogicalAndOf>(),
    .logical_or = logical<LogicalOrOf>(),
    .neg = unary<NegOf>(Wide{}),
    .abs = unary<AbsOf>(All{}),
    .sign = unary<SignOf>(Wide{}),
    .square = unary<SquareOf>(Wide{}),
    .sqrt = unary<SqrtOf>(Wide{}, 0.4),
    .rsqrt = unary<RsqrtOf>(Wide{}, 0.6),
    .reciprocal = unary<ReciprocalOf>(Wide{}, 0.3),
    .floor = unary<FloorOf>(Wide{}),
    .ceil = unary<CeilOf>(Wide{}),
    .round = unary<RoundOf>(Wide{}),
};

}  // namespace

const ArithmeticTables* Tables() { return &kTables; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {
namespace {

HWY_EXPORT(Tables);
const ArithmeticTables& tables() { return *HWY_DYNAMIC_DISPATCH(Tables)(); }

constexpr DTypeSet kAll = kFloatTypes | DTypeSet{DType::kInt32, DType::kInt64};

template <auto member>
constexpr KernelDecl vectors(const char* op, DTypeSet types = kFloatTypes) {
  KernelDecl decl{.op = op, .name = "vectors"};
  decl.float_loops = [] { return float_loops(tables().*member); };
  decl.types[0] = {"T", types};
  decl.priority = 10;
  decl.run = [](KernelContext& c) {
    const auto& table = tables().*member;
    if constexpr (std::is_same_v<std::decay_t<decltype(table)>, UnaryOp>) {
      run_unary(c, table);
    } else {
      run_binary(c, table);
    }
  };
  return decl;
}
template <auto member>
constexpr KernelDecl gradient(const char* op) {
  KernelDecl decl = vectors<member>(op);
  decl.run = [](KernelContext& c) { run_binary_same_shape(c, tables().*member); };
  return decl;
}

template <auto member>
constexpr KernelDecl logical(const char* op) {
  KernelDecl decl = vectors<member>(op);
  decl.types[0] = {};
  return decl;
}

// Equality of shapes that do not broadcast has an answer of its own, which the reference gives.
const char* shapes_fit(const KernelContext& c) {
  const Shape &x = c.input(0).shape(), &y = c.input(1).shape();
  if (x == y || c.attr<bool>("incompatible_shape_error")) return nullptr;
  return "the shapes may not broadcast";
}
template <auto member>
constexpr KernelDecl equality(const char* op) {
  KernelDecl decl = vectors<member>(op, kAll);
  decl.accepts = shapes_fit;
  return decl;
}

using Tables = ArithmeticTables;
const KernelRegistration kKernels[] = {
    KernelRegistration(vectors<&Tables::add>("AddV2", kAll)),
    KernelRegistration(vectors<&Tables::add>("Add", kAll)),
    KernelRegistration(vectors<&Tables::sub>("Sub", kAll)),
    KernelRegistration(vectors<&Tables::mul>("Mul", kFloatTypes | DTypeSet{DType::kInt32})),
    KernelRegistration(vectors<&Tables::div>("RealDiv")),
    KernelRegistration(vectors<&Tables::div>("Div")),
    KernelRegistration(vectors<&Tables::div_no_nan>("DivNoNan")),
    KernelRegistration(vectors<&Tables::mul_no_nan>("MulNoNan")),
    KernelRegistration(vectors<&Tables::xdivy>("Xdivy")),
    KernelRegistration(vectors<&Tables::maximum>("Maximum", kAll)),
    KernelRegistration(vectors<&Tables::minimum>("Minimum", kAll)),
    KernelRegistration(vectors<&Tables::squared_difference>("SquaredDifference")),
    KernelRegistration(gradient<&Tables::tanh_grad>("TanhGrad")),
    KernelRegistration(gradient<&Tables::sigmoid_grad>("SigmoidGrad")),
    KernelRegistration(equality<&Tables::equal>("Equal")),
    KernelRegistration(equality<&Tables::not_equal>("NotEqual")),
    KernelRegistration(vectors<&Tables::less>("Less", kAll)),
    KernelRegistration(vectors<&Tables::less_equal>("LessEqual", kAll)),
    KernelRegistration(vectors<&Tables::greater>("Greater", kAll)),
    KernelRegistration(vectors<&Tables::greater_equal>("GreaterEqual", kAll)),
    KernelRegistration(logical<&Tables::logical_and>("LogicalAnd")),
    KernelRegistration(logical<&Tables::logical_or>("LogicalOr")),
    KernelRegistration(vectors<&Tables::neg>("Neg")),
    KernelRegistration(vectors<&Tables::abs>("Abs", kAll)),
    KernelRegistration(vectors<&Tables::sign>("Sign")),
    KernelRegistration(vectors<&Tables::square>("Square")),
    KernelRegistration(vectors<&Tables::sqrt>("Sqrt")),
    KernelRegistration(vectors<&Tables::rsqrt>("Rsqrt")),
    KernelRegistration(vectors<&Tables::reciprocal>("Reciprocal")),
    KernelRegistration(vectors<&Tables::reciprocal>("Inv")),
    KernelRegistration(vectors<&Tables::floor>("Floor")),
    KernelRegistration(vectors<&Tables::ceil>("Ceil")),
    KernelRegistration(vectors<&Tables::round>("Round")),
    KernelRegistration(vectors<&Tables::round>("Rint")),
};

}  // namespace
}  // namespace tandem::cpu
#endif
