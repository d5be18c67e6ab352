// Functions of one element.

#include "tandem/kernels/cuda/elementwise/map.h"

namespace tandem::cuda {
namespace {

// Computed in Compute<T>: float for 16-bit floats.
#define TANDEM_UNARY(NAME, EXPRESSION)   \
  struct NAME {                          \
    template <class T>                   \
    TANDEM_DEVICE static T apply(T x) {  \
      return static_cast<T>(EXPRESSION); \
    }                                    \
  };

TANDEM_UNARY(Neg, -x)
TANDEM_UNARY(Square, x* x)
TANDEM_UNARY(Sqrt, std::sqrt(x))
TANDEM_UNARY(Rsqrt, T(1) / std::sqrt(x))
TANDEM_UNARY(Exp, std::exp(x))
TANDEM_UNARY(Expm1, std::expm1(x))
TANDEM_UNARY(Log, std::log(x))
TANDEM_UNARY(Log1p, std::log1p(x))
TANDEM_UNARY(Sin, std::sin(x))
TANDEM_UNARY(Cos, std::cos(x))
TANDEM_UNARY(Tan, std::tan(x))
TANDEM_UNARY(Asin, std::asin(x))
TANDEM_UNARY(Acos, std::acos(x))
TANDEM_UNARY(Atan, std::atan(x))
TANDEM_UNARY(Sinh, std::sinh(x))
TANDEM_UNARY(Cosh, std::cosh(x))
TANDEM_UNARY(Tanh, std::tanh(x))
TANDEM_UNARY(Asinh, std::asinh(x))
TANDEM_UNARY(Acosh, std::acosh(x))
TANDEM_UNARY(Atanh, std::atanh(x))
TANDEM_UNARY(Sigmoid, x >= T(0) ? T(1) / (T(1) + std::exp(-x)) : std::exp(x) / (T(1) + std::exp(x)))
TANDEM_UNARY(Softplus, x > T(20) ? x : std::log1p(std::exp(x)))
TANDEM_UNARY(Softsign, x / (T(1) + std::fabs(x)))
TANDEM_UNARY(Elu, x < T(0) ? std::expm1(x) : x)
TANDEM_UNARY(Selu, x < T(0) ? T(1.0507009873554804934193349852946) *
                                  T(1.6732632423543772848170429916717) * std::expm1(x)
                            : T(1.0507009873554804934193349852946) * x)
TANDEM_UNARY(Erf, std::erf(x))
TANDEM_UNARY(Erfc, std::erfc(x))
TANDEM_UNARY(Lgamma, std::lgamma(x))
TANDEM_UNARY(Floor, std::floor(x))
TANDEM_UNARY(Ceil, std::ceil(x))
TANDEM_UNARY(Rint, std::rint(x))
TANDEM_UNARY(Reciprocal, T(1) / x)
TANDEM_UNARY(Invert, ~x)

struct Abs {
  template <class T>
  TANDEM_DEVICE static T apply(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return static_cast<T>(x < T(0) ? -x : x);
    }
  }
};

struct Sign {
  template <class T>
  TANDEM_DEVICE static T apply(T x) {
    if (x != x) return x;
    return static_cast<T>((T(0) < x ? 1 : 0) - (x < T(0) ? 1 : 0));
  }
};

// NaN stays NaN.
struct Relu {
  template <class T>
  TANDEM_DEVICE static T apply(T x) {
    return x < T(0) ? T(0) : x;
  }
};
struct Relu6 {
  template <class T>
  TANDEM_DEVICE static T apply(T x) {
    return x < T(0) ? T(0) : (x > T(6) ? T(6) : x);
  }
};

struct IsNan {
  template <class T>
  TANDEM_DEVICE static bool apply(T x) {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  TANDEM_DEVICE static bool apply(T x) {
    return x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity();
  }
};
struct IsFinite {
  template <class T>
  TANDEM_DEVICE static bool apply(T x) {
    return x - x == T(0);
  }
};
struct LogicalNot {
  TANDEM_DEVICE static bool apply(bool x) { return !x; }
};

template <class T>
TANDEM_KERNEL leaky_relu_kernel(const T* x, T* y, std::int64_t n, float alpha) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Compute<T> value = load(x[i]);
    y[i] = store<T>(value < Compute<T>(0) ? value * static_cast<Compute<T>>(alpha) : value);
  }
}

template <class T>
TANDEM_KERNEL fill_kernel(T* y, std::int64_t n, T value) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) y[i] = value;
}

template <class T>
void fill(const TensorView& y, T value) {
  if (y.count > 0) {
    TANDEM_LAUNCH(fill_kernel<T>, shape_for(y.count), 0, y.as<T>(), y.count, value);
  }
}

}  // namespace

#define TANDEM_UNARY_FLOATING(FUNCTION, STRUCT) \
  void FUNCTION(KernelCall& call) { map_floating<STRUCT>(call); }

void unary_abs(KernelCall& call) { map_numbers<Abs>(call); }
void unary_neg(KernelCall& call) { map_numbers<Neg>(call); }
void unary_sign(KernelCall& call) { map_numbers<Sign>(call); }
void unary_square(KernelCall& call) { map_numbers<Square>(call); }
void unary_relu(KernelCall& call) { map_numbers<Relu>(call); }
void unary_relu6(KernelCall& call) { map_numbers<Relu6>(call); }
TANDEM_UNARY_FLOATING(unary_sqrt, Sqrt)
TANDEM_UNARY_FLOATING(unary_rsqrt, Rsqrt)
TANDEM_UNARY_FLOATING(unary_exp, Exp)
TANDEM_UNARY_FLOATING(unary_expm1, Expm1)
TANDEM_UNARY_FLOATING(unary_log, Log)
TANDEM_UNARY_FLOATING(unary_log1p, Log1p)
TANDEM_UNARY_FLOATING(unary_sin, Sin)
TANDEM_UNARY_FLOATING(unary_cos, Cos)
TANDEM_UNARY_FLOATING(unary_tan, Tan)
TANDEM_UNARY_FLOATING(unary_asin, Asin)
TANDEM_UNARY_FLOATING(unary_acos, Acos)
TANDEM_UNARY_FLOATING(unary_atan, Atan)
TANDEM_UNARY_FLOATING(unary_sinh, Sinh)
TANDEM_UNARY_FLOATING(unary_cosh, Cosh)
TANDEM_UNARY_FLOATING(unary_tanh, Tanh)
TANDEM_UNARY_FLOATING(unary_asinh, Asinh)
TANDEM_UNARY_FLOATING(unary_acosh, Acosh)
TANDEM_UNARY_FLOATING(unary_atanh, Atanh)
TANDEM_UNARY_FLOATING(unary_sigmoid, Sigmoid)
TANDEM_UNARY_FLOATING(unary_softplus, Softplus)
TANDEM_UNARY_FLOATING(unary_softsign, Softsign)
TANDEM_UNARY_FLOATING(unary_elu, Elu)
TANDEM_UNARY_FLOATING(unary_selu, Selu)
TANDEM_UNARY_FLOATING(unary_erf, Erf)
TANDEM_UNARY_FLOATING(unary_erfc, Erfc)
TANDEM_UNARY_FLOATING(unary_lgamma, Lgamma)
TANDEM_UNARY_FLOATING(unary_floor, Floor)
TANDEM_UNARY_FLOATING(unary_ceil, Ceil)
TANDEM_UNARY_FLOATING(unary_rint, Rint)
TANDEM_UNARY_FLOATING(unary_reciprocal, Reciprocal)
TANDEM_UNARY_FLOATING(unary_is_nan, IsNan)
TANDEM_UNARY_FLOATING(unary_is_inf, IsInf)
TANDEM_UNARY_FLOATING(unary_is_finite, IsFinite)

void unary_logical_not(KernelCall& call) { map_as<LogicalNot, bool>(call); }

void unary_invert(KernelCall& call) {
  const Type type = call.input(0).type;
  if (!visit_integers(type,
                      [&](auto tag) { map_as<Invert, typename decltype(tag)::type>(call); })) {
    no_kernel_for(type);
  }
}

void unary_leaky_relu(KernelCall& call) {
  const TensorView x = call.input(0), y = call.allocate_output(0, x.sizes);
  const float alpha = call.attr_float("alpha");
  if (x.count == 0) return;
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(leaky_relu_kernel<T>, shape_for(x.count), 0, x.as<T>(), y.as<T>(), x.count,
                  alpha);
  });
}

void unary_zeros_like(KernelCall& call) {
  const TensorView y = call.allocate_output(0, call.input(0).sizes);
  visit_size(y.type, [&](auto tag) { fill<typename decltype(tag)::type>(y, 0); });
}

void unary_ones_like(KernelCall& call) {
  const TensorView y = call.allocate_output(0, call.input(0).sizes);
  if (y.type == Type::kBool) return fill<bool>(y, true);
  visit_numbers(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill<T>(y, store<T>(1));
  });
}

}  // namespace tandem::cuda
