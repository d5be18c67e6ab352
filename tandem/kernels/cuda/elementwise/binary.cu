// Functions of two elements, with broadcasting, and the gradients that are such functions. Sums and
// products of integers wrap around.

#include "tandem/kernels/cuda/elementwise/combine.h"
#include "tandem/kernels/cuda/elementwise/functions.h"

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

TANDEM_BINARY(BitwiseAnd, a& b)
TANDEM_BINARY(BitwiseOr, a | b)
TANDEM_BINARY(BitwiseXor, a ^ b)
TANDEM_COMPARISON(Less, a < b)
TANDEM_COMPARISON(LessEqual, a <= b)
TANDEM_COMPARISON(Greater, a > b)
TANDEM_COMPARISON(GreaterEqual, a >= b)

// How far to shift: C++ defines only what is less than the number of bits.
template <class T>
TANDEM_DEVICE int shift_distance(T y) {
  constexpr int kMax = 8 * static_cast<int>(sizeof(T)) - 1;
  if (y < T(0)) return 0;
  return y > T(kMax) ? kMax : static_cast<int>(y);
}
TANDEM_BINARY(LeftShift, static_cast<Wrapping<T>>(a) << shift_distance(b))
TANDEM_BINARY(RightShift, a >> shift_distance(b))
TANDEM_BINARY(NextAfter, std::nextafter(a, b))
TANDEM_COMPARISON(Equal, a == b)
TANDEM_COMPARISON(NotEqual, a != b)

struct ApproximateEqual {
  template <class T>
  TANDEM_DEVICE static bool apply(T a, T b, float tolerance) {
    if constexpr (std::is_integral_v<T>) {
      const auto x = static_cast<Wrapping<T>>(a), y = static_cast<Wrapping<T>>(b);
      const auto distance = static_cast<Wrapping<T>>(a < b ? y - x : x - y);
      return static_cast<double>(distance) < static_cast<double>(tolerance);
    } else {
      return std::fabs(a - b) < static_cast<T>(tolerance);
    }
  }
};
struct LeakyReluGrad {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b, float alpha) {
    return b > T(0) ? a : a * static_cast<T>(alpha);
  }
};

struct LogicalAnd {
  TANDEM_DEVICE static bool apply(bool a, bool b) { return a && b; }
};
struct LogicalOr {
  TANDEM_DEVICE static bool apply(bool a, bool b) { return a || b; }
};

#undef TANDEM_BINARY

TANDEM_KERNEL fill_bool_kernel(bool* y, std::int64_t n, bool value) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) y[i] = value;
}
void fill_bool(const TensorView& y, bool value) {
  TANDEM_LAUNCH(fill_bool_kernel, shape_for(y.count), 0, y.as<bool>(), y.count, value);
}

}  // namespace

#define TANDEM_BINARY_KERNEL(FUNCTION, KIND, STRUCT) \
  void FUNCTION(KernelCall& call) { combine_##KIND<STRUCT>(call); }

TANDEM_BINARY_KERNEL(binary_add, numbers, Add)
TANDEM_BINARY_KERNEL(binary_sub, numbers, Sub)
TANDEM_BINARY_KERNEL(binary_mul, numbers, Mul)
TANDEM_BINARY_KERNEL(binary_real_div, floating, Divide)
TANDEM_BINARY_KERNEL(binary_div, numbers, Divide)
TANDEM_BINARY_KERNEL(binary_div_no_nan, floating, DivNoNan)
TANDEM_BINARY_KERNEL(binary_mul_no_nan, floating, MulNoNan)
TANDEM_BINARY_KERNEL(binary_maximum, numbers, Maximum)
TANDEM_BINARY_KERNEL(binary_minimum, numbers, Minimum)
TANDEM_BINARY_KERNEL(binary_squared_difference, numbers, SquaredDifference)
TANDEM_BINARY_KERNEL(binary_pow, numbers, Pow)
TANDEM_BINARY_KERNEL(binary_left_shift, integers, LeftShift)
TANDEM_BINARY_KERNEL(binary_right_shift, integers, RightShift)
TANDEM_BINARY_KERNEL(binary_truncate_mod, numbers, TruncateMod)
TANDEM_BINARY_KERNEL(binary_atan2, floating, Atan2)
TANDEM_BINARY_KERNEL(binary_floor_mod, numbers, FloorMod)
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

// A quotient that is rounded twice for 16-bit floats.
template <template <class> class Rounded>
static void rounded_quotient(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_numbers(type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        combine_as<Rounded<T>, T>(call);
      })) {
    no_kernel_for(type);
  }
}
void binary_floor_div(KernelCall& call) { rounded_quotient<FloorDiv>(call); }
void binary_truncate_div(KernelCall& call) { rounded_quotient<TruncateDiv>(call); }

void binary_next_after(KernelCall& call) {
  if (call.input(0).type == Type::kFloat) return combine_as<NextAfter, float>(call);
  combine_as<NextAfter, double>(call);
}

// Values of shapes that do not broadcast differ as a whole, if the caller wants that rather than an
// error.
template <class F>
static void equality(KernelCall& call, bool of_unlike_shapes) {
  const TensorView a = call.input(0), b = call.input(1);
  if (!call.attr_bool("incompatible_shape_error")) {
    for (std::size_t i = 1; i <= a.sizes.size() && i <= b.sizes.size(); ++i) {
      const std::int64_t x = a.sizes[a.sizes.size() - i], y = b.sizes[b.sizes.size() - i];
      if (x == y || x == 1 || y == 1) continue;
      return fill_bool(call.allocate_output(0, {}), of_unlike_shapes);
    }
  }
  if (a.type == Type::kBool) return combine_as<F, bool>(call);
  combine_numbers<F>(call);
}
void binary_equal(KernelCall& call) { equality<Equal>(call, false); }
void binary_not_equal(KernelCall& call) { equality<NotEqual>(call, true); }

void binary_approximate_equal(KernelCall& call) {
  combine_with_parameter<ApproximateEqual>(call, call.attr_float("tolerance"), false);
}
void binary_leaky_relu_grad(KernelCall& call) {
  combine_with_parameter<LeakyReluGrad>(call, call.attr_float("alpha"), true);
}

void binary_logical_and(KernelCall& call) { combine_as<LogicalAnd, bool>(call); }
void binary_logical_or(KernelCall& call) { combine_as<LogicalOr, bool>(call); }

}  // namespace tandem::cuda
