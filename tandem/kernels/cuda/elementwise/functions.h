#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "tandem/kernels/cuda/elementwise/arithmetic.h"
#include "tandem/kernels/cuda/support/number.h"

// Functions of one or two elements that are elements again: what elementwise kernels compute, and
// generated kernels too (kernels/cuda/fused), so that this header and what it includes is compiled
// at run time as well. All are templates of the type that is computed in.

namespace tandem::cuda {

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

#undef TANDEM_UNARY

// The element as it is.
struct Copy {
  template <class T>
  TANDEM_DEVICE static T apply(T x) {
    return x;
  }
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

#define TANDEM_BINARY(NAME, EXPRESSION)      \
  struct NAME {                              \
    template <class T>                       \
    TANDEM_DEVICE static T apply(T a, T b) { \
      return static_cast<T>(EXPRESSION);     \
    }                                        \
  };
TANDEM_BINARY(DivNoNan, b == T(0) ? T(0) : a / b)
TANDEM_BINARY(MulNoNan, b == T(0) ? T(0) : a * b)
TANDEM_BINARY(Atan2, std::atan2(a, b))
TANDEM_BINARY(Xdivy, a == T(0) ? T(0) : a / b)
TANDEM_BINARY(Xlogy, a == T(0) ? T(0) : a * std::log(b))
TANDEM_BINARY(Xlog1py, a == T(0) ? T(0) : a * std::log1p(b))

struct SquaredDifference {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    const T difference = Sub::apply(a, b);
    return Mul::apply(difference, difference);
  }
};

// Integers are divided towards zero first. A remainder by 0 is 0: nothing on a GPU stops for it.
struct TruncateMod {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
      }
      return static_cast<T>(a % b);
    } else {
      return std::fmod(a, b);
    }
  }
};

template <class T>
TANDEM_DEVICE bool signs_differ(T a, T b) {
  return (a < T(0)) != (b < T(0));
}

// The quotient of 16-bit floats is rounded to 16 bits before it is rounded to an integer.
template <class Element>
struct TruncateDiv {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return Divide::apply(a, b);
    } else {
      return std::trunc(load(store<Element>(a / b)));
    }
  }
};
template <class Element>
struct FloorDiv {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      const T quotient = Divide::apply(a, b);
      const bool below = TruncateMod::apply(a, b) != T(0) && signs_differ(a, b);
      return below ? static_cast<T>(quotient - T(1)) : quotient;
    } else {
      return std::floor(load(store<Element>(a / b)));
    }
  }
};

// The remainder has the divisor's sign.
struct FloorMod {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    const T rest = TruncateMod::apply(a, b);
    return rest != T(0) && signs_differ(rest, b) ? static_cast<T>(rest + b) : rest;
  }
};

// Powers of integers wrap around; negative ones are 0, as nothing on a GPU stops for them.
struct Pow {
  template <class T>
  TANDEM_DEVICE static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b < T(0)) return T(0);
      Wrapping<T> base = static_cast<Wrapping<T>>(a), power = 1;
      for (auto exponent = static_cast<Wrapping<T>>(b); exponent != 0; exponent >>= 1) {
        if (exponent & 1) power *= base;
        base *= base;
      }
      return static_cast<T>(power);
    } else {
      return std::pow(a, b);
    }
  }
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
// A gradient of 0 stays 0, whatever it is multiplied by.
TANDEM_BINARY(SqrtGrad, b == T(0) ? b : b * T(0.5) / a)
TANDEM_BINARY(RsqrtGrad, b == T(0) ? b : T(-0.5) * b * a * a * a)
TANDEM_BINARY(ReciprocalGrad, b == T(0) ? b : -b * a * a)
TANDEM_BINARY(SoftplusGrad, a / (T(1) + std::exp(-b)))
TANDEM_BINARY(SoftsignGrad, a / ((T(1) + std::fabs(b)) * (T(1) + std::fabs(b))))

#undef TANDEM_BINARY

}  // namespace tandem::cuda
