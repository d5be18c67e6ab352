// Functions that are integrals: Dawsn, Expint, FresnelCos, FresnelSin, Spence; and PopulationCount.

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

// The power series near 0; elsewhere Rybicki's sum of Gaussians around x.
double dawsn(double x) {
  const double modulus = std::fabs(x);
  if (modulus < 1) {
    double term = x, sum = x;
    for (int k = 1; std::fabs(term) > std::fabs(sum) * 1e-17; ++k) {
      term *= -2 * x * x / (2 * k + 1);
      sum += term;
    }
    return sum;
  }
  if (modulus > 1e8) return 0.5 / x;
  constexpr double kStep = 0.2;
  const double nearest = 2 * std::round(modulus / (2 * kStep));
  const double rest = modulus - nearest * kStep;
  double sum = 0;
  for (int n = -33; n <= 33; n += 2) {
    const double apart = rest - n * kStep;
    sum += std::exp(-apart * apart) / (n + nearest);
  }
  return std::copysign(sum * std::numbers::inv_sqrtpi, x);
}

// Ei(x) for x > 0; NaN below, as in TensorFlow.
double expint(double x) {
  if (x != x) return x;
  if (x == 0) return -kInfinity;
  if (x < 0) return kNan;
  if (x > 750) return kInfinity;
  double term = 1, sum = 0;
  if (x <= 40) {
    for (int k = 1; k < 200; ++k) {
      term *= x / k;
      sum += term / k;
    }
    return std::numbers::egamma + std::log(x) + sum;
  }
  for (int k = 1; k < x && term > 1e-18; ++k) {
    sum += term;
    term *= k / x;
  }
  return std::exp(x) / x * sum;
}

// C(x) + i S(x): the power series, or the continued fraction of the complementary error function
// along the diagonal.
std::complex<double> fresnel(double x) {
  using Complex = std::complex<double>;
  const double modulus = std::fabs(x);
  if (modulus != modulus) return {kNan, kNan};
  if (modulus > 1e8) return {std::copysign(0.5, x), std::copysign(0.5, x)};
  Complex result;
  if (modulus < 1.6) {
    const double q = kPi / 2 * modulus * modulus;
    Complex term(modulus, 0);
    result = term;
    for (int k = 1; std::abs(term) > 1e-18; ++k) {
      term *= Complex(0, q / k);
      result += term / static_cast<double>(2 * k + 1);
    }
  } else {
    const double square = modulus * modulus;
    Complex fraction = 0;
    const int terms = 20 + static_cast<int>(300 / square);
    const Complex start(1, -kPi * square);
    for (int k = terms; k > 0; --k) {
      fraction = static_cast<double>(-(2 * k - 1) * (2 * k)) /
                 (start + static_cast<double>(4 * k) + fraction);
    }
    // exp(i pi x² / 2) from what is left of x² after whole turns.
    const double low = std::fma(modulus, modulus, -square);
    const double angle = kPi / 2 * (std::fmod(square, 4) + low);
    const Complex turn(std::cos(angle), std::sin(angle));
    result = Complex(0.5, 0.5) * (1.0 - turn * Complex(modulus, -modulus) / (start + fraction));
  }
  return x < 0 ? -result : result;
}
double fresnel_cos(double x) { return fresnel(x).real(); }
double fresnel_sin(double x) { return fresnel(x).imag(); }

// Spence's integral Li2(1 - x): reflected to x in [0.5, 2], then the series in u = -log(x) whose
// coefficients are Bernoulli numbers.
double spence(double x) {
  if (x < 0 || x != x) return kNan;
  if (x == kInfinity) return -kInfinity;
  if (x == 0) return kPi * kPi / 6;
  const double log = std::log(x);
  if (x > 2) return -spence(1 / x) - log * log / 2;
  if (x < 0.5) return kPi * kPi / 6 - log * std::log1p(-x) - spence(1 - x);
  constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                   5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                   43867.0 / 798, -174611.0 / 330};
  const double u = -log;
  double power = u, sum = u - u * u / 4;
  for (int k = 1; k <= 10; ++k) {
    power *= u * u / ((2.0 * k) * (2.0 * k + 1));
    sum += kBernoulli[k - 1] * power;
  }
  return sum;
}

template <double (*f)(double)>
struct Of {
  template <class T>
  static T of(T x) {
    return static_cast<T>(f(static_cast<double>(x)));
  }
};

struct PopulationCountOf {
  template <class T>
  static std::uint8_t of(T x) {
    return static_cast<std::uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};

constexpr UnaryOp kDawsn = unary_op<Of<dawsn>>(Floats{}, 300);
constexpr UnaryOp kExpint = unary_op<Of<expint>>(Floats{}, 300);
constexpr UnaryOp kFresnelCos = unary_op<Of<fresnel_cos>>(Floats{}, 300);
constexpr UnaryOp kFresnelSin = unary_op<Of<fresnel_sin>>(Floats{}, 300);
constexpr UnaryOp kSpence = unary_op<Of<spence>>(Floats{}, 60);
constexpr UnaryOp kPopulationCount = unary_op<PopulationCountOf>(kInts, 1);

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kDawsn>("Dawsn")),
    KernelRegistration(kernel_of<kExpint>("Expint")),
    KernelRegistration(kernel_of<kFresnelCos>("FresnelCos")),
    KernelRegistration(kernel_of<kFresnelSin>("FresnelSin")),
    KernelRegistration(kernel_of<kSpence>("Spence")),
    KernelRegistration(kernel_of<kPopulationCount>("PopulationCount")),
};

}  // namespace
}  // namespace tandem::cpu
