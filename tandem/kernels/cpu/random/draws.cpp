// Random variates whose parameters are inputs: gamma, Poisson and binomial.

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <type_traits>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/random/random.h"
#include "tandem/kernels/cpu/random/rejection.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

constexpr std::uint64_t kBlocksEach = 256;

template <class F>
void value_switch(DType dtype, F f) {
  with_type<Half, BFloat16, float, double, std::int32_t, std::int64_t>(dtype, f);
}

// A draw as a value: integers hold what of it they can.
template <class T>
T rounded(double x) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(x)) return 0;
    constexpr auto kEnd = static_cast<double>(std::numeric_limits<T>::max());
    return x >= kEnd ? std::numeric_limits<T>::max() : static_cast<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

template <class T>
double wide_value(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(x);
  } else {
    return static_cast<double>(static_cast<float>(x));
  }
}

Array as_double(const Array& x) {
  Array wide(DType::kDouble, x.shape());
  auto* to = wide.data<double>();
  value_switch(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    for (std::int64_t i = 0; i < x.num_elements(); ++i) to[i] = wide_value(from[i]);
  });
  return wide;
}

// Output 0 of `samples` draws for each of the parameters, which lie along its last axes. Draws are
// numbered parameter by parameter; `draw(k, parameter)` makes the one of number k.
template <class Draw>
void fill_draws(KernelContext& c, const Shape& shape, std::int64_t parameters, Draw draw) {
  Array& out = c.allocate_output(0, shape);
  const std::int64_t samples = parameters == 0 ? 0 : out.num_elements() / parameters;
  value_switch(out.dtype(), [&]<class T>() {
    T* to = out.data<T>();
    c.intra_op().parallel_for(
        parameters * samples, /*cost in ns=*/100, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t parameter = k / samples;
            to[(k % samples) * parameters + parameter] = rounded<T>(draw(k, parameter));
          }
        });
  });
}

using DrawFn = double (*)(Philox, double);

template <DrawFn kDraw>
void fill_of(KernelContext& c, const Shape& shape, const Array& parameter, const Philox& stream) {
  const Array wide = as_double(parameter);
  const auto* values = wide.data<double>();
  fill_draws(c, shape, wide.num_elements(), [&](std::int64_t k, std::int64_t i) {
    Philox own = stream;
    own.skip(static_cast<std::uint64_t>(k) * kBlocksEach);
    return kDraw(own, values[i]);
  });
}

// Stateful: the parameters' shape follows the one asked for.
template <DrawFn kDraw>
void stateful(KernelContext& c) {
  if (c.input(0).rank() != 1) {
    throw InvalidArgumentError(
        cat("shape must be a vector of {int32,int64}, got shape: ", c.input(0).shape()));
  }
  Shape shape = shape_input(c, 0);
  const std::int64_t samples = shape.num_elements();
  const Array& parameter = c.input(1);
  for (const std::int64_t size : parameter.shape().dims()) shape.add_dim(size);
  if (samples == 0 || parameter.num_elements() == 0) {
    c.allocate_output(0, shape);
    return;
  }
  const Philox stream = reserve_outputs(c, checked_multiply(samples, parameter.num_elements()));
  fill_of<kDraw>(c, shape, parameter, stream);
}

void require_end(const Shape& shape, const Shape& end) {
  bool good = shape.rank() >= end.rank();
  for (int i = 0; good && i < end.rank(); ++i) {
    good = shape[shape.rank() - end.rank() + i] == end[i];
  }
  if (!good) {
    throw InvalidArgumentError(
        cat("Shape passed in must end with broadcasted shape: ", shape, " and ", end, "."));
  }
}

// Stateless: the shape asked for ends with the parameters'.
template <DrawFn kDraw>
void fill_stateless(KernelContext& c, const Philox& stream, int input) {
  const Shape shape = shape_input(c, 0);
  const Array& parameter = c.input(input);
  if (shape.num_elements() == 0) {
    c.allocate_output(0, shape);
    return;
  }
  require_end(shape, parameter.shape());
  fill_of<kDraw>(c, shape, parameter, stream);
}
template <DrawFn kDraw>
void stateless(KernelContext& c) {
  fill_stateless<kDraw>(c, seed_input(c, 1), 2);
}
void gamma_v3(KernelContext& c) { fill_stateless<draw_gamma>(c, key_counter_input(c, 1), 4); }

// ---- Binomial ----

double binomial(const Philox& stream, std::int64_t k, double count, double prob) {
  if (std::isnan(prob)) return prob;
  if (!(count > 0) || prob <= 0) return 0;
  if (prob >= 1) return count;
  const double p = prob <= 0.5 ? prob : 1 - prob;
  Philox own = stream;
  own.skip(static_cast<std::uint64_t>(k) * (count * p >= 10 ? kBlocksEach : 42));
  const double drawn = draw_binomial(own, count, p);
  return prob <= 0.5 ? drawn : count - drawn;
}

void fill_binomial(KernelContext& c, const Shape& shape, int first, const Philox& stream) {
  const Array counts = as_double(c.input(first));
  const Array probs = as_double(c.input(first + 1));
  const Shape both = broadcast(counts.shape(), probs.shape());
  require_end(shape, both);
  // The parameters, each as long as both broadcast together.
  const auto index = [&](const Shape& small, std::int64_t i) {
    std::int64_t at = 0, step = 1;
    for (int axis = both.rank() - 1, own = small.rank() - 1; axis >= 0; --axis, --own) {
      if (own >= 0) {
        if (small[own] != 1) at += (i % both[axis]) * step;
        step *= small[own];
      }
      i /= both[axis];
    }
    return at;
  };
  fill_draws(c, shape, both.num_elements(), [&](std::int64_t k, std::int64_t i) {
    return binomial(stream, k, counts.data<double>()[index(counts.shape(), i)],
                    probs.data<double>()[index(probs.shape(), i)]);
  });
}

void stateless_binomial(KernelContext& c) {
  const Philox stream = seed_input(c, 1);
  fill_binomial(c, shape_input(c, 0), 2, stream);
}

void stateful_binomial(KernelContext& c) {
  const Shape shape = shape_input(c, 2);
  const std::int64_t parameters = broadcast(c.input(3).shape(), c.input(4).shape()).num_elements();
  const std::int64_t samples = parameters == 0 ? 0 : shape.num_elements() / parameters;
  // Like TensorFlow sets numbers aside here.
  const std::int64_t numbers = checked_multiply(parameters * 200, samples + 3) / 4;
  fill_binomial(c, shape, 3, take_variable_blocks(c, static_cast<std::uint64_t>(numbers)));
}

constexpr TypeConstraint kGammas{"dtype", {DType::kHalf, DType::kFloat, DType::kDouble}};
const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "RandomGamma", .run = stateful<draw_gamma>}),
    KernelRegistration(
        {.op = "StatelessRandomGammaV2", .types = {kGammas}, .run = stateless<draw_gamma>}),
    KernelRegistration({.op = "StatelessRandomGammaV3", .types = {kGammas}, .run = gamma_v3}),
    KernelRegistration({.op = "RandomPoisson", .run = stateful<draw_poisson>}),
    KernelRegistration({.op = "RandomPoissonV2", .run = stateful<draw_poisson>}),
    KernelRegistration({.op = "StatelessRandomPoisson", .run = stateless<draw_poisson>}),
    KernelRegistration({.op = "StatelessRandomBinomial", .run = stateless_binomial}),
    KernelRegistration({.op = "StatefulRandomBinomial", .run = stateful_binomial}),
};

}  // namespace

double draw_binomial(Philox stream, double count, double prob) {
  BackwardsUniform uniform;
  if (count * prob < 10) {
    double sum = 0;
    for (double drawn = 0;; ++drawn) {
      sum += std::ceil(std::log(uniform(stream)) / std::log1p(-prob));
      if (!(sum <= count)) return drawn;
    }
  }
  // What Stirling's formula leaves of log(k!).
  const auto tail = [](double k) {
    constexpr double kSmall[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                 0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                 0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                 0.00833056343336287};
    if (k <= 9) return kSmall[static_cast<int>(std::max(k, 0.0))];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
  };
  const double deviation = std::sqrt(count * prob * (1 - prob));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * prob;
  const double middle = count * prob + 0.5;
  const double inside = 0.92 - 4.2 / b;
  const double ratio = prob / (1 - prob);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((count + 1) * prob);
  while (true) {
    const double u = uniform(stream) - 0.5;
    const double v = uniform(stream);
    const double shifted = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / shifted + b) * u + middle);
    if (shifted >= 0.07 && v <= inside) return k;
    if (k < 0 || k > count) continue;
    const double bound = (mode + 0.5) * std::log((mode + 1) / (ratio * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(ratio * (count - k + 1) / (k + 1)) + tail(mode) +
                         tail(count - mode) - tail(k) - tail(count - k);
    if (std::log(v * alpha / (a / (shifted * shifted) + b)) <= bound) return k;
  }
}

}  // namespace tandem::cpu
