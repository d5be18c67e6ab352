// Bessel functions of orders 0 and 1, calculated in double.

#include <cmath>
#include <limits>
#include <numbers>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The modified function of the first kind times exp(-x), x >= 0: the power series, whose terms are
// all positive, or far out the asymptotic one.
double scaled_i(int order, double x) {
  if (x == kInfinity) return 0;
  double term = 1, sum = 1;
  if (x <= 30) {
    const double q = x * x / 4;
    for (int k = 1; term > sum * 1e-17; ++k) {
      term *= q / (k * (k + order));
      sum += term;
    }
    return std::exp(-x) * (order == 0 ? sum : sum * x / 2);
  }
  for (int k = 1; k < 60 && std::fabs(term) > 1e-17; ++k) {
    const double odd = 2 * k - 1;
    term *= -(4.0 * order * order - odd * odd) / (8 * k * x);
    sum += term;
  }
  return sum / std::sqrt(2 * std::numbers::pi * x);
}

// The function of the second kind times exp(x); infinite for x <= 0, as in TensorFlow. Close to 0
// by its series; elsewhere as the integral of exp(-x (cosh t - 1)) cosh(order t) over t > 0 by the
// trapezoidal rule, which converges faster than any power of the step.
double scaled_k(int order, double x) {
  if (x != x) return x;
  if (x <= 0) return kInfinity;
  if (x < 0.1) {
    const double q = x * x / 4, log = std::log(x / 2) + std::numbers::egamma;
    double power = 1, harmonic = 0, sum = 0;
    for (int k = 0; k < 8; ++k) {
      if (order == 0) {
        sum += power * (harmonic - log);
      } else {
        sum += power * (log - harmonic - 0.5 / (k + 1)) / (k + 1);
      }
      harmonic += 1.0 / (k + 1);
      power *= q / ((k + 1.0) * (k + 1.0));
    }
    return std::exp(x) * (order == 0 ? sum : 1 / x + sum * x / 2);
  }
  const double step = std::min(0.125, 0.5 / std::sqrt(x));
  double sum = 0.5;
  for (int k = 1;; ++k) {
    const double t = k * step;
    const double sinh_half = std::sinh(t / 2);
    const double value = std::exp(-2 * x * sinh_half * sinh_half) * (order ? std::cosh(t) : 1);
    sum += value;
    if (!(value > sum * 1e-18)) return sum * step;
  }
}

double odd(double x, double of_modulus) { return std::copysign(of_modulus, x); }

double i0e(double x) { return scaled_i(0, std::fabs(x)); }
double i1e(double x) { return odd(x, scaled_i(1, std::fabs(x))); }
// exp(x) alone would overflow before the product does.
double times_exp(double scaled, double x) {
  const double half = std::exp(x / 2);
  return scaled * half * half;
}
double i0(double x) { return std::isinf(x) ? kInfinity : times_exp(i0e(x), std::fabs(x)); }
double i1(double x) { return std::isinf(x) ? x : times_exp(i1e(x), std::fabs(x)); }
double k0e(double x) { return scaled_k(0, x); }
double k1e(double x) { return scaled_k(1, x); }
double k0(double x) { return x <= 0 ? kInfinity : times_exp(scaled_k(0, x), -x); }
double k1(double x) { return x <= 0 ? kInfinity : times_exp(scaled_k(1, x), -x); }
double j0(double x) { return ::j0(x); }
double j1(double x) { return ::j1(x); }
double y0(double x) { return x <= 0 ? -kInfinity : ::y0(x); }
double y1(double x) { return x <= 0 ? -kInfinity : ::y1(x); }

template <double (*f)(double)>
struct Of {
  template <class T>
  static T of(T x) {
    return static_cast<T>(f(static_cast<double>(x)));
  }
};

constexpr UnaryOp kI0 = unary_op<Of<i0>>(Floats{}, 60);
constexpr UnaryOp kI0e = unary_op<Of<i0e>>(Floats{}, 60);
constexpr UnaryOp kI1 = unary_op<Of<i1>>(Floats{}, 60);
constexpr UnaryOp kI1e = unary_op<Of<i1e>>(Floats{}, 60);
constexpr UnaryOp kJ0 = unary_op<Of<j0>>(Floats{}, 60);
constexpr UnaryOp kJ1 = unary_op<Of<j1>>(Floats{}, 60);
constexpr UnaryOp kK0 = unary_op<Of<k0>>(Floats{}, 500);
constexpr UnaryOp kK0e = unary_op<Of<k0e>>(Floats{}, 500);
constexpr UnaryOp kK1 = unary_op<Of<k1>>(Floats{}, 500);
constexpr UnaryOp kK1e = unary_op<Of<k1e>>(Floats{}, 500);
constexpr UnaryOp kY0 = unary_op<Of<y0>>(Floats{}, 60);
constexpr UnaryOp kY1 = unary_op<Of<y1>>(Floats{}, 60);

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kI0>("BesselI0")),
    KernelRegistration(kernel_of<kI0e>("BesselI0e")),
    KernelRegistration(kernel_of<kI1>("BesselI1")),
    KernelRegistration(kernel_of<kI1e>("BesselI1e")),
    KernelRegistration(kernel_of<kJ0>("BesselJ0")),
    KernelRegistration(kernel_of<kJ1>("BesselJ1")),
    KernelRegistration(kernel_of<kK0>("BesselK0")),
    KernelRegistration(kernel_of<kK0e>("BesselK0e")),
    KernelRegistration(kernel_of<kK1>("BesselK1")),
    KernelRegistration(kernel_of<kK1e>("BesselK1e")),
    KernelRegistration(kernel_of<kY0>("BesselY0")),
    KernelRegistration(kernel_of<kY1>("BesselY1")),
};

}  // namespace
}  // namespace tandem::cpu
