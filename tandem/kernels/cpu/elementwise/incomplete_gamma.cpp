// The incomplete gamma and beta functions and what derives from them, calculated in double.

#include <cmath>
#include <limits>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/elementwise.h"

namespace tandem::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTiny = 1e-290;
constexpr double kEnough = 1e-17;
constexpr int kMaxTerms = 100'000;

double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {  // x > 0
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double s = 1 / (x * x);
  const double series =
      s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s / 132))));
  return sum + std::log(x) - 0.5 / x - series;
}

// A number and its derivative in the first argument of the function.
struct Dual {
  double value = 0;
  double slope = 0;
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator*(Dual a, Dual b) {
  return {a.value * b.value, a.value * b.slope + a.slope * b.value};
}
Dual operator/(Dual a, Dual b) {
  const double q = a.value / b.value;
  return {q, (a.slope - q * b.slope) / b.value};
}

struct Gamma {
  Dual lower, upper;  // their sum is 1
};

// x^a exp(-x) / Gamma(a).
Dual gamma_factor(double a, double x) {
  const double log = a * std::log(x) - x - log_gamma(a);
  const double value = std::exp(log);
  return {value, value * (std::log(x) - digamma(a))};
}

// Both regularised incomplete gamma functions for a > 0 and 0 < x < infinity: the series for the
// lower one, or Legendre's continued fraction for the upper one, whichever converges.
Gamma incomplete_gamma(double a, double x) {
  const Dual factor = gamma_factor(a, x);
  if (x < a + 1) {
    Dual term = Dual{1, 0} / Dual{a, 1}, sum = term;
    for (int n = 1; n < kMaxTerms; ++n) {
      term = term * (Dual{x, 0} / Dual{a + n, 1});
      sum = sum + term;
      if (std::fabs(term.value) < sum.value * kEnough &&
          std::fabs(term.slope) < std::fabs(sum.slope) * kEnough) {
        break;
      }
    }
    const Dual lower = factor * sum;
    return {lower, {1 - lower.value, -lower.slope}};
  }
  Dual b{x + 1 - a, -1};
  Dual c{1 / kTiny, 0};
  Dual d = Dual{1, 0} / b;
  Dual h = d;
  for (int n = 1; n < kMaxTerms; ++n) {
    const Dual an{-n * (n - a), static_cast<double>(n)};
    b = b + Dual{2, 0};
    d = an * d + b;
    if (std::fabs(d.value) < kTiny) d.value = kTiny;
    c = b + an / c;
    if (std::fabs(c.value) < kTiny) c.value = kTiny;
    d = Dual{1, 0} / d;
    const Dual step = c * d;
    h = h * step;
    if (std::fabs(step.value - 1) < 1e-16 && std::fabs(step.slope) < 1e-16) break;
  }
  const Dual upper = factor * h;
  return {{1 - upper.value, -upper.slope}, upper};
}

bool outside(double a, double x) { return !(a > 0) || !(x >= 0); }

double igamma(double a, double x) {
  if (outside(a, x)) return kNan;
  if (x == 0) return 0;
  if (x == kInfinity) return a == kInfinity ? kNan : 1;
  return a == kInfinity ? 0 : incomplete_gamma(a, x).lower.value;
}
double igammac(double a, double x) {
  if (outside(a, x)) return kNan;
  if (x == 0) return 1;
  if (x == kInfinity) return a == kInfinity ? kNan : 0;
  return a == kInfinity ? 1 : incomplete_gamma(a, x).upper.value;
}
double igamma_grad_a(double a, double x) {
  if (outside(a, x)) return kNan;
  if (x == 0 || x == kInfinity || a == kInfinity) return 0;
  return incomplete_gamma(a, x).lower.slope;
}
// How a sample moves with alpha while its quantile stays: -(dP / da) / (dP / dx).
double random_gamma_grad(double a, double x) {
  if (outside(a, x)) return kNan;
  if (x == 0) return 0;
  const double density = gamma_factor(a, x).value / x;
  return -incomplete_gamma(a, x).lower.slope / density;
}

template <double (*f)(double, double)>
struct Of {
  template <class T>
  static T of(T a, T x) {
    return static_cast<T>(f(static_cast<double>(a), static_cast<double>(x)));
  }
};
constexpr BinaryOp kIgamma = binary_op<Of<igamma>>(Floats{}, 500).without_float16();
constexpr BinaryOp kIgammac = binary_op<Of<igammac>>(Floats{}, 500).without_float16();
constexpr BinaryOp kGradA = binary_op<Of<igamma_grad_a>>(Floats{}, 1000).without_float16();
constexpr BinaryOp kSampleGrad = binary_op<Of<random_gamma_grad>>(Floats{}, 1000).without_float16();

// ---- Betainc ----

// The continued fraction of the incomplete beta function, for x below the mean.
double beta_fraction(double a, double b, double x) {
  const auto away_from_zero = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double h = d;
  for (int m = 1; m < kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    h *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    h *= c * d;
    if (std::fabs(c * d - 1) < 1e-16) break;
  }
  return h;
}

double incomplete_beta(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || x > 1) return kNan;
  if (x == 0 || x == 1) return x;
  const double factor = std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) +
                                 b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return factor * beta_fraction(a, b, x) / a;
  return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

// Shapes must agree, except those of scalars.
template <class T>
void betainc(KernelContext& c) {
  Shape shape;
  bool found = false;
  for (int i = 0; i < 3; ++i) {
    if (c.input(i).rank() == 0) continue;
    if (found && !(shape == c.input(i).shape())) {
      throw InvalidArgumentError(cat("Shapes of a, b and x are inconsistent: ", c.input(0).shape(),
                                     " vs. ", c.input(1).shape(), " vs. ", c.input(2).shape()));
    }
    shape = c.input(i).shape();
    found = true;
  }
  Array& out = c.allocate_output(0, shape);
  const T* in[3];
  std::int64_t step[3];
  for (int i = 0; i < 3; ++i) {
    in[i] = c.input(i).data<T>();
    step[i] = c.input(i).rank() == 0 ? 0 : 1;
  }
  c.intra_op().parallel_for(out.num_elements(), 500, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double value = incomplete_beta(static_cast<double>(in[0][i * step[0]]),
                                           static_cast<double>(in[1][i * step[1]]),
                                           static_cast<double>(in[2][i * step[2]]));
      out.data<T>()[i] = static_cast<T>(value);
    }
  });
}

const KernelRegistration kKernels[] = {
    KernelRegistration(kernel_of<kIgamma>("Igamma")),
    KernelRegistration(kernel_of<kIgammac>("Igammac")),
    KernelRegistration(kernel_of<kGradA>("IgammaGradA")),
    KernelRegistration(kernel_of<kSampleGrad>("RandomGammaGrad")),
    KernelRegistration({.op = "Betainc", .types = {{"T", {DType::kFloat}}}, .run = betainc<float>}),
    KernelRegistration(
        {.op = "Betainc", .types = {{"T", {DType::kDouble}}}, .run = betainc<double>}),
};

}  // namespace
}  // namespace tandem::cpu
