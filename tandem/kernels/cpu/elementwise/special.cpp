// Erf, Erfc, Erfinv, Ndtri, Lgamma, Digamma, Zeta, Polygamma, NextAfter. Float is computed in
// double where there is no function of the standard library.

#include "tandem/kernels/cpu/elementwise/special.h"

#include <math.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <int n>
double polynomial(const double (&coefficients)[n], double x) {
  double sum = coefficients[n - 1];
  for (int i = n - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// The z with normal distribution function 1/2 + q, where `tail` is min(p, 1 - p): Wichura's
// algorithm AS 241, good to 16 digits.
double normal_quantile(double q, double tail) {
  using namespace normal_quantile_polynomials;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentreTop, r) / polynomial(kCentreBottom, r);
  }
  if (!(tail > 0)) return tail == 0 ? std::copysign(kInfinity, q) : kNan;
  const double r = std::sqrt(-std::log(tail));
  const double z = r <= 5 ? polynomial(kMiddleTop, r - 1.6) / polynomial(kMiddleBottom, r - 1.6)
                          : polynomial(kFarTop, r - 5) / polynomial(kFarBottom, r - 5);
  return std::copysign(z, q);
}

// By reflection for x < 0, recurrence up to 10, and the asymptotic series from there on.
double digamma(double x) {
  if (!(x < kInfinity)) return x;
  double sum = 0;
  if (x <= 0) {
    const double whole = std::floor(x);
    if (whole == x) return kNan;  // the poles, and -infinity
    double part = x - whole;
    if (part > 0.5) part -= 1;
    sum = part == 0.5 ? 0 : -std::numbers::pi / std::tan(std::numbers::pi * part);
    x = 1 - x;
  }
  for (; x < 10; ++x) sum -= 1 / x;
  const double s = 1 / (x * x);
  constexpr double kSeries[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                1.0 / 132, -691.0 / 32760, 1.0 / 12};
  return sum + std::log(x) - 0.5 / x - s * polynomial(kSeries, s);
}

// Hurwitz zeta for x > 1 and q > 0 by the formula of Euler and Maclaurin, after the first terms.
double zeta_of_positive(double x, double q) {
  double sum = std::pow(q, -x);
  double term = sum;
  for (int i = 0; i < 9; ++i) {
    q += 1;
    term = std::pow(q, -x);
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-17) return sum;
  }
  sum += term * q / (x - 1) - 0.5 * term;
  double factor = 1;
  double k = 0;
  for (const double divisor : kZetaDivisors) {
    factor *= x + k;
    term /= q;
    const double correction = factor * term / divisor;
    sum += correction;
    if (std::fabs(correction) < std::fabs(sum) * 1e-17) break;
    k += 1;
    factor *= x + k;
    term /= q;
    k += 1;
  }
  return sum;
}

}  // namespace

double zeta(double x, double q) {
  if (x == 1) return kInfinity;
  if (!(x > 1)) return kNan;
  if (q > 0 || q != q) return zeta_of_positive(x, q);
  const double part = q - std::floor(q);
  if (part == 0) return kInfinity;
  if (x != std::floor(x)) return kNan;  // powers of negative numbers
  // The sum over all integers, less the terms before q.
  const double sign = std::fmod(x, 2) == 0 ? 1 : -1;
  return zeta_of_positive(x, part) +
         sign * (zeta_of_positive(x, 1 - part) - zeta_of_positive(x, 1 - q));
}

double polygamma(double order, double x) {
  if (order < 0 || order != std::floor(order)) return kNan;
  if (order == 0) return digamma(x);
  const double sign = std::fmod(order, 2) == 0 ? -1 : 1;
  return sign * std::tgamma(order + 1) * zeta(order + 1, x);
}

namespace {

struct ErfOf {
  template <class T>
  static T of(T x) {
    return std::erf(x);
  }
};
struct ErfcOf {
  template <class T>
  static T of(T x) {
    return std::erfc(x);
  }
};
struct ErfinvOf {
  template <class T>
  static T of(T x) {
    const double y = static_cast<double>(x);
    return static_cast<T>(normal_quantile(y / 2, (1 - std::fabs(y)) / 2) / std::numbers::sqrt2);
  }
};
struct NdtriOf {
  template <class T>
  static T of(T x) {
    const double p = static_cast<double>(x);
    return static_cast<T>(normal_quantile(p - 0.5, p < 0.5 ? p : 1 - p));
  }
};
// Not std::lgamma, which writes the sign of Gamma to a global variable.
struct LgammaOf {
  static float of(float x) {
    int sign;
    return ::lgammaf_r(x, &sign);
  }
  static double of(double x) {
    int sign;
    return ::lgamma_r(x, &sign);
  }
};
struct DigammaOf {
  template <class T>
  static T of(T x) {
    return static_cast<T>(digamma(static_cast<double>(x)));
  }
};
struct ZetaOf {
  template <class T>
  static T of(T x, T q) {
    return static_cast<T>(zeta(static_cast<double>(x), static_cast<double>(q)));
  }
};
struct PolygammaOf {
  template <class T>
  static T of(T a, T x) {
    return static_cast<T>(polygamma(static_cast<double>(a), static_cast<double>(x)));
  }
};
struct NextAfterOf {
  template <class T>
  static T of(T x1, T x2) {
    return std::nextafter(x1, x2);
  }
};

constexpr UnaryOp kErf = unary_op<ErfOf>(Floats{}, 10);
constexpr UnaryOp kErfc = unary_op<ErfcOf>(Floats{}, 15);
constexpr UnaryOp kErfinv = unary_op<ErfinvOf>(Floats{}, 20);
constexpr UnaryOp kNdtri = unary_op<NdtriOf>(Floats{}, 20);
constexpr UnaryOp kLgamma = unary_op<LgammaOf>(Floats{}, 30);
constexpr UnaryOp kDigamma = unary_op<DigammaOf>(Floats{}, 40);
constexpr BinaryOp kZeta = binary_op<ZetaOf>(Floats{}, 300).without_float16();
constexpr BinaryOp kPolygamma = binary_op<PolygammaOf>(Floats{}, 300).without_float16();
constexpr BinaryOp kNextAfter = binary_op<NextAfterOf>(Floats{}, 5).without_float16();

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kErf>("Erf")),
    KernelRegistration(kernel_of<kErfc>("Erfc")),
    KernelRegistration(kernel_of<kErfinv>("Erfinv")),
    KernelRegistration(kernel_of<kNdtri>("Ndtri")),
    KernelRegistration(kernel_of<kLgamma>("Lgamma")),
    KernelRegistration(kernel_of<kDigamma>("Digamma")),
    KernelRegistration(kernel_of<kZeta>("Zeta")),
    KernelRegistration(kernel_of<kPolygamma>("Polygamma")),
    KernelRegistration(kernel_of<kNextAfter>("NextAfter")),
};

}  // namespace
}  // namespace tandem::cpu
