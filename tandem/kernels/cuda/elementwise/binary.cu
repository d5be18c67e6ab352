// Functions of two elements, with broadcasting, and the gradients that are such functions. Sums and
// products of integers wrap around.

#include "tandem/kernels/cuda/elementwise/combine.h"

namespace tandem::cuda {
namespace {

#define TANDEM_BINARY(NAME, EXPRESSION)      \
  struct NAME {                              \
    template <class T>                       \
    TANDEM_DEVICE static T apply(T a, T b) { \
      return static_cast<T>(EXPRESSION);     \
    }                                        \
  };
#define TANDEM_COMPARISON(NAME, EXPRESSION)     \
  struct NAME {                                 \
    template <class T>                          \
    TANDEM_DEVICE static bool apply(T a, T b) { \
      return EXPRESSION;                        \
    }                                           \
  };

// Integers are computed as unsigned ones, whose overflow is defined.
template <class T>
struct Wrapping {
  using type = T;
};
template <>
struct Wrapping<std::int8_t> {
  using type = unsigned;
};
template <>
struct Wrapping<std::uint8_t> {
  using type = unsigned;
};
template <>
struct Wrapping<std::int16_t> {
  using type = unsigned;
};
template <>
struct Wrapping<std::uint16_t> {
  using type = unsigned;
};
template <>
struct Wrapping<std::int32_t> {
  using type = unsigned;
};
template <>
struct Wrapping<std::int64_t> {
  using type = std::uint64_t;
};
#define TANDEM_WRAPPING(NAME, OPERATOR)                                    \
  struct NAME {                                                            \
    template <class T>                                                     \
    TANDEM_DEVICE static T apply(T a, T b) {                               \
      using W = typename Wrapping<T>::type;                                \
      return static_cast<T>(static_cast<W>(a) OPERATOR static_cast<W>(b)); \
    }                                                                      \
  };

TANDEM_WRAPPING(Add, +)
TANDEM_WRAPPING(Sub, -)
TANDEM_WRAPPING(Mul, *)
TANDEM_BINARY(RealDiv, a / b)
TANDEM_BINARY(DivNoNan, b == T(0) ? T(0) : a / b)
TANDEM_BINARY(MulNoNan, b == T(0) ? T(0) : a * b)
// A NaN of either side is the result.
TANDEM_BINARY(Maximum, a != a ? a : (b != b ? b : (a < b ? b : a)))
TANDEM_BINARY(Minimum, a != a ? a : (b != b ? b : (b < a ? b : a)))
TANDEM_BINARY(Pow, std::pow(a, b))
TANDEM_BINARY(Atan2, std::atan2(a, b))
TANDEM_BINARY(Xdivy, a == T(0) ? T(0) : a / b)
TANDEM_BINARY(Xlogy, a == T(0) ? T(0) : a * std::log(b))
TANDEM_BINARY(Xlog1py, a == T(0) ? T(0) : a * std::log1p(b))
TANDEM_BINARY(BitwiseAnd, a& b)
TANDEM_BINARY(BitwiseOr, a | b)
TANDEM_BINARY(BitwiseXor, a ^ b)
TANDEM_COMPARISON(Less, a < b)
TANDEM_COMPARISON(LessEqual, a <= b)
TANDEM_COMPARISON(Greater, a > b)
TANDEM_COMPARISON(GreaterEqual, a >= b)

struct SquaredDifference {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    const T difference = Sub::apply(a, b);
    return Mul::apply(difference, difference);
  }
};

// The quotient of 16-bit floats is rounded to 16 bits before it is rounded to an integer.
template <class Element>
struct FloorDiv {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    return std::floor(load(store<Element>(a / b)));
  }
};

// The remainder has the divisor's sign.
struct FloorMod {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    const T rest = std::fmod(a, b);
    return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  }
};

struct LogicalAnd {
  TANDEM_DEVICE static bool apply(bool a, bool b) { return a && b; }
};
struct LogicalOr {
  TANDEM_DEVICE static bool apply(bool a, bool b) { return a || b; }
};

// Gradients: `a` and `b` are the op's first and second input.
// A product, as in TensorFlow: a NaN of the gradient stays one.
TANDEM_BINARY(ReluGrad, a* T(b > T(0) ? 1 : 0))
TANDEM_BINARY(Relu6Grad, a* T(b > T(0) && b < T(6) ? 1 : 0))
TANDEM_BINARY(EluGrad, b < T(0) ? a * (b + T(1)) : a)
TANDEM_BINARY(SeluGrad, b < T(0) ? a * (b + T(1.0507009873554804934193349852946) *
                                                T(1.6732632423543772848170429916717))
                                 : a * T(1.0507009873554804934193349852946))
TANDEM_BINARY(SigmoidGrad, b* a*(T(1) - a))
TANDEM_BINARY(TanhGrad, b*(T(1) - a * a))
TANDEM_BINARY(SqrtGrad, b* T(0.5) / a)
TANDEM_BINARY(RsqrtGrad, T(-0.5) * b * a * a * a)
TANDEM_BINARY(ReciprocalGrad, -b* a* a)
TANDEM_BINARY(SoftplusGrad, a / (T(1) + std::exp(-b)))
TANDEM_BINARY(SoftsignGrad, a / ((T(1) + std::fabs(b)) * (T(1) + std::fabs(b))))

}  // namespace

#define TANDEM_BINARY_KERNEL(FUNCTION, KIND, STRUCT) \
  void FUNCTION(KernelCall& call) { combine_##KIND<STRUCT>(call); }

TANDEM_BINARY_KERNEL(binary_add, numbers, Add)
TANDEM_BINARY_KERNEL(binary_sub, numbers, Sub)
TANDEM_BINARY_KERNEL(binary_mul, numbers, Mul)
TANDEM_BINARY_KERNEL(binary_real_div, floating, RealDiv)
TANDEM_BINARY_KERNEL(binary_div_no_nan, floating, DivNoNan)
TANDEM_BINARY_KERNEL(binary_mul_no_nan, floating, MulNoNan)
TANDEM_BINARY_KERNEL(binary_maximum, numbers, Maximum)
TANDEM_BINARY_KERNEL(binary_minimum, numbers, Minimum)
TANDEM_BINARY_KERNEL(binary_squared_difference, numbers, SquaredDifference)
TANDEM_BINARY_KERNEL(binary_pow, floating, Pow)
TANDEM_BINARY_KERNEL(binary_atan2, floating, Atan2)
TANDEM_BINARY_KERNEL(binary_floor_mod, floating, FloorMod)
TANDEM_BINARY_KERNEL(binary_xdivy, floating, Xdivy)
TANDEM_BINARY_KERNEL(binary_xlogy, floating, Xlogy)
TANDEM_BINARY_KERNEL(binary_xlog1py, floating, Xlog1py)
TANDEM_BINARY_KERNEL(binary_less, numbers, Less)
TANDEM_BINARY_KERNEL(binary_less_equal, numbers, LessEqual)
TANDEM_BINARY_KERNEL(binary_greater, numbers, Greater)
TANDEM_BINARY_KERNEL(binary_greater_equal, numbers, GreaterEqual)
TANDEM_BINARY_KERNEL(binary_bitwise_and, integers, BitwiseAnd)
TANDEM_BINARY_KERNEL(binary_bitwise_or, integers, BitwiseOr)
TANDEM_BINARY_KERNEL(binary_bitwise_xor, integers, BitwiseXor)
TANDEM_BINARY_KERNEL(binary_relu_grad, numbers, ReluGrad)
TANDEM_BINARY_KERNEL(binary_relu6_grad, numbers, Relu6Grad)
TANDEM_BINARY_KERNEL(binary_elu_grad, floating, EluGrad)
TANDEM_BINARY_KERNEL(binary_selu_grad, floating, SeluGrad)
TANDEM_BINARY_KERNEL(binary_sigmoid_grad, floating, SigmoidGrad)
TANDEM_BINARY_KERNEL(binary_tanh_grad, floating, TanhGrad)
TANDEM_BINARY_KERNEL(binary_sqrt_grad, floating, SqrtGrad)
TANDEM_BINARY_KERNEL(binary_rsqrt_grad, floating, RsqrtGrad)
TANDEM_BINARY_KERNEL(binary_reciprocal_grad, floating, ReciprocalGrad)
TANDEM_BINARY_KERNEL(binary_softplus_grad, floating, SoftplusGrad)
TANDEM_BINARY_KERNEL(binary_softsign_grad, floating, SoftsignGrad)

void binary_floor_div(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_floating(type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        combine_as<FloorDiv<T>, T>(call);
      })) {
    no_kernel_for(type);
  }
}

void binary_logical_and(KernelCall& call) { combine_as<LogicalAnd, bool>(call); }
void binary_logical_or(KernelCall& call) { combine_as<LogicalOr, bool>(call); }

}  // namespace tandem::cuda
