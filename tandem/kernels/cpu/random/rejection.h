#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "tandem/kernels/cpu/random/distributions.h"
#include "tandem/kernels/cpu/random/philox.h"

// Draws that may be refused and made again, in double, in TensorFlow's order: of each group of
// numbers the last one is used first. A draw begins at a place in the stream that is its own.

namespace tandem::cpu {

/// The values of a distribution one by one, the last of each group first.
template <class Distribution>
class Backwards {
 public:
  double operator()(Philox& stream) {
    if (left_ == 0) {
      const Philox::Block block = stream();
      Distribution()(block.data(), values_);
      left_ = Distribution::kGroup;
    }
    return values_[--left_];
  }

 private:
  double values_[Distribution::kGroup] = {};
  int left_ = 0;
};
using BackwardsUniform = Backwards<Uniform<double>>;
using BackwardsNormal = Backwards<Normal<double>>;

/// A gamma variate of shape alpha and scale 1, by Marsaglia and Tsang (2000); NaN unless alpha > 0.
inline double draw_gamma(Philox stream, double alpha) {
  if (alpha == 1) {
    double u[2];
    const Philox::Block block = stream();
    Uniform<double>()(block.data(), u);
    return -std::log1p(-u[1]);
  }
  if (!(alpha > 0)) return alpha == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(alpha)) return alpha;
  const bool small = alpha < 1;
  const double d = alpha + (small ? 2.0 / 3 : -1.0 / 3);
  const double c = 1.0 / 3 / std::sqrt(d);
  BackwardsNormal normal;
  BackwardsUniform uniform;
  while (true) {
    const double x = normal(stream);
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = uniform(stream);
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      const double drawn = d * v;
      return small ? drawn * std::pow(uniform(stream), 1 / alpha) : drawn;
    }
  }
}

/// A Poisson variate: below 10 by Knuth's product of uniforms, else by Hörmann's transformed
/// rejection (1993).
inline double draw_poisson(Philox stream, double rate) {
  BackwardsUniform uniform;
  if (rate < 10) {
    const double end = std::exp(-rate);
    double product = 1;
    for (double count = 0;; ++count) {
      product *= uniform(stream);
      if (product <= end) return count;
    }
  }
  if (!std::isfinite(rate)) return rate;
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  while (true) {
    const double u = uniform(stream) - 0.5;
    const double v = uniform(stream);
    const double shifted = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / shifted + b) * u + rate + 0.43);
    if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (shifted < 0.013 && v > shifted)) continue;
    const double s = std::log(v * inverse_alpha / (a / (shifted * shifted) + b));
    if (s <= -rate + k * log_rate - std::lgamma(k + 1)) return k;
  }
}

/// A binomial variate for 0 < prob <= 0.5 and count > 0: sums of geometric variates where the mean
/// is small, else Hörmann's transformed rejection (1993).
double draw_binomial(Philox stream, double count, double prob);

}  // namespace tandem::cpu
