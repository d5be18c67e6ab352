// Functions of one element.

#include <vector>

#include "tandem/kernels/cuda/elementwise/map.h"
#include "tandem/kernels/cuda/support/warp.h"

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

// By reflection for x < 0, recurrence up to 10, and the asymptotic series from there on.
struct Digamma {
  template <class T>
  TANDEM_DEVICE static T apply(T given) {
    auto x = static_cast<double>(given);
    constexpr double kPi = 3.14159265358979323846;
    if (!(x < std::numeric_limits<double>::infinity())) return given;
    double sum = 0;
    if (x <= 0) {
      const double whole = std::floor(x);
      if (whole == x) return std::numeric_limits<T>::quiet_NaN();  // the poles, and -infinity
      double part = x - whole;
      if (part > 0.5) part -= 1;
      sum = part == 0.5 ? 0 : -kPi / std::tan(kPi * part);
      x = 1 - x;
    }
    for (; x < 10; ++x) sum -= 1 / x;
    const double s = 1 / (x * x);
    const double series =
        s *
        (1.0 / 12 -
         s * (1.0 / 120 -
              s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760 - s / 12))))));
    return static_cast<T>(sum + std::log(x) - 0.5 / x - series);
  }
};

// A ratio of polynomials of degree 7, lowest powers first, the denominator's lowest being 1.
TANDEM_DEVICE double ratio(const double (&top)[8], const double (&bottom)[7], double x) {
  double a = top[7], b = bottom[6];
  for (int i = 6; i >= 0; --i) a = a * x + top[i];
  for (int i = 5; i >= 0; --i) b = b * x + bottom[i];
  return a / (b * x + 1.0);
}

// The z with normal distribution function 1/2 + q, where `tail` is min(p, 1 - p): Wichura's
// algorithm AS 241, good to 16 digits.
TANDEM_DEVICE double normal_quantile(double q, double tail) {
  if (std::fabs(q) <= 0.425) {
    return q * ratio({3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                      1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                      3.3430575583588128105e4, 2.5090809287301226727e3},
                     {4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
                      2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
                      5.2264952788528545610e3},
                     0.180625 - q * q);
  }
  if (!(tail > 0)) {
    return tail == 0 ? std::copysign(std::numeric_limits<double>::infinity(), q)
                     : std::numeric_limits<double>::quiet_NaN();
  }
  const double r = std::sqrt(-std::log(tail));
  const double z =
      r <= 5
          ? ratio({1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
                   3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
                   2.27238449892691845833e-2, 7.74545014278341407640e-4},
                  {2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
                   1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                   1.05075007164441684324e-9},
                  r - 1.6)
          : ratio({6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
                   2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                   2.71155556874348757815e-5, 2.01033439929228813265e-7},
                  {5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
                   7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
                   2.04426310338993978564e-15},
                  r - 5);
  return std::copysign(z, q);
}
struct Erfinv {
  template <class T>
  TANDEM_DEVICE static T apply(T x) {
    const auto y = static_cast<double>(x);
    return static_cast<T>(normal_quantile(y / 2, (1 - std::fabs(y)) / 2) / 1.41421356237309504880);
  }
};
struct Ndtri {
  template <class T>
  TANDEM_DEVICE static T apply(T x) {
    const auto p = static_cast<double>(x);
    return static_cast<T>(normal_quantile(p - 0.5, p < 0.5 ? p : 1 - p));
  }
};

template <class T>
TANDEM_KERNEL population_count_kernel(const T* x, std::uint8_t* y, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    std::uint8_t count = 0;
    for (auto bits = static_cast<std::make_unsigned_t<T>>(x[i]); bits != 0;
         bits = static_cast<std::make_unsigned_t<T>>(bits & (bits - 1))) {
      ++count;
    }
    y[i] = count;
  }
}

// A bound that is NaN bounds nothing, and NaN stays. A step of 0: one bound for all.
template <class T>
TANDEM_KERNEL clip_kernel(const T* x, const T* low, const T* high, T* y, std::int64_t n,
                          std::int64_t low_step, std::int64_t high_step) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Compute<T> value = load(x[i]), least = load(low[i * low_step]),
                     most = load(high[i * high_step]);
    const Compute<T> below = most < value ? most : value;
    y[i] = store<T>(below < least ? least : below);
  }
}

// Sets bit 1 where there is a NaN, 2 for infinity, 4 for minus infinity.
template <class T>
TANDEM_KERNEL find_strange_kernel(const T* x, int* found, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Compute<T> value = load(x[i]);
    if (value != value) atomic_max(&found[0], 1);
    if (value - value != Compute<T>(0) && value == value) {
      atomic_max(&found[value > Compute<T>(0) ? 1 : 2], 1);
    }
  }
}

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
TANDEM_UNARY_FLOATING(unary_digamma, Digamma)
TANDEM_UNARY_FLOATING(unary_erfinv, Erfinv)
TANDEM_UNARY_FLOATING(unary_ndtri, Ndtri)
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

void unary_population_count(KernelCall& call) {
  const TensorView x = call.input(0), y = call.allocate_output(0, x.sizes);
  if (x.count > 0 && !visit_integers(x.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(population_count_kernel<T>, shape_for(x.count), 0, x.as<T>(),
                      y.as<std::uint8_t>(), x.count);
      })) {
    no_kernel_for(x.type);
  }
}

void unary_clip(KernelCall& call) {
  const TensorView x = call.input(0), low = call.input(1), high = call.input(2);
  for (const TensorView& bound : {low, high}) {
    if (bound.rank() != 0 && bound.sizes != x.sizes) {
      refuse(
          "clip_value_min and clip_value_max must be either of the same shape as input, or a "
          "scalar");
    }
  }
  const TensorView y = call.allocate_output(0, x.sizes);
  if (x.count > 0 && !visit_numbers(x.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(clip_kernel<T>, shape_for(x.count), 0, x.as<T>(), low.as<T>(), high.as<T>(),
                      y.as<T>(), x.count, std::int64_t{low.rank() == 0 ? 0 : 1},
                      std::int64_t{high.rank() == 0 ? 0 : 1});
      })) {
    no_kernel_for(x.type);
  }
}

// Waits for the answer: what it is asked for is to stop there.
static void check_numerics(KernelCall& call, bool name_signs) {
  const TensorView x = call.input(0);
  const std::string message = call.attr_string("message");
  const TensorView y = call.allocate_output(0, x.sizes);
  if (x.count == 0) return;
  const std::size_t bytes = static_cast<std::size_t>(x.count) * size_of(x.type);
  if (y.data != x.data) call.copy(y.data, x.data, bytes);
  int found[3] = {};
  int* const on_device = static_cast<int*>(call.scratch(sizeof(found)));
  call.zero(on_device, sizeof(found));
  visit_floating(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(find_strange_kernel<T>, shape_for(x.count), 0, x.as<T>(), on_device, x.count);
  });
  call.read_back(found, on_device, sizeof(found));
  std::vector<std::string> kinds;
  if (name_signs) {
    if (found[2]) kinds.push_back("-Inf");
    if (found[1]) kinds.push_back("+Inf");
  } else if (found[1] || found[2]) {
    kinds.push_back("Inf");
  }
  if (found[0]) kinds.push_back("NaN");
  if (kinds.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    list += (i == 0 ? "" : i + 1 == kinds.size() ? " and " : ", ") + kinds[i];
  }
  refuse(message + " : Tensor had " + list + " values");
}
void unary_check_numerics(KernelCall& call) { check_numerics(call, false); }
void unary_check_numerics_v2(KernelCall& call) { check_numerics(call, true); }

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
