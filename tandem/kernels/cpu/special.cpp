// Erf, Erfc, Erfinv, Ndtri, Lgamma, Digamma, Zeta, Polygamma, NextAfter. Float is computed in
// double where there is no function of the standard library.

#include <math.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tandem/kernels/cpu/elementwise.h"

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
  constexpr double kCentreTop[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                   1.9715909503065514427e3, 1.3731693765509461125e4,
                                   4.5921953931549871457e4, 6.7265770927008700853e4,
                                   3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double kCentreBottom[] = {1.0,
                                      4.2313330701600911252e1,
                                      6.8718700749205790830e2,
                                      5.3941960214247511077e3,
                                      2.1213794301586595867e4,
                                      3.9307895800092710610e4,
                                      2.8729085735721942674e4,
                                      5.2264952788528545610e3};
  constexpr double kMiddleTop[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                   5.76949722146069140550e0,  3.64784832476320460504e0,
                                   1.27045825245236838258e0,  2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kMiddleBottom[] = {1.0,
                                      2.05319162663775882187e0,
                                      1.67638483018380384940e0,
                                      6.89767334985100004550e-1,
                                      1.48103976427480074590e-1,
                                      1.51986665636164571966e-2,
                                      5.47593808499534494600e-4,
                                      1.05075007164441684324e-9};
  constexpr double kFarTop[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                1.78482653991729133580e0,  2.96560571828504891230e-1,
                                2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kFarBottom[] = {1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};
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
    if (whole == x) return x == 0 ? (std::signbit(x) ? kInfinity : -kInfinity) : kNan;
    if (x == -kInfinity) return kNan;
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
  // Bernoulli numbers over factorials: (2k)! / B2k.
  constexpr double kTerms[] = {12.0,
                               -720.0,
                               30240.0,
                               -1209600.0,
                               47900160.0,
                               -1.8924375803183791606e9,
                               7.47242496e10,
                               -2.950130727918164224e12,
                               1.1646782814350067249e14,
                               -4.5979787224074726105e15,
                               1.8152105401943546773e17,
                               -7.1661652561756670113e18};
  double factor = 1;
  double k = 0;
  for (const double divisor : kTerms) {
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
