// Rounding to the levels of integers: the FakeQuant family.

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"

namespace tandem::cpu {
namespace {

// The levels for a range, moved so that zero is one of them.
struct Levels {
  float low, high, scale;
  bool none;  // an empty range around zero

  Levels(float min, float max, int lowest, int highest) : none(min == 0 && max == 0) {
    const auto first = static_cast<float>(lowest), last = static_cast<float>(highest);
    scale = (max - min) / (last - first);
    const float zero = first - min / scale;
    const float nudged = zero < first ? first : zero > last ? last : std::round(zero);
    low = (first - nudged) * scale;
    high = (last - nudged) * scale;
  }
  float round(float x) const {
    if (none) return 0;
    const float inverse = 1.0f / scale;
    const float zero = std::floor(-low * inverse + 0.5f);
    const float inside = std::min(std::max(x, low), high);
    return std::floor((inside - low) * inverse - zero + 0.5f) * scale;
  }
  bool contains(float x) const { return none || (x >= low && x <= high); }
};

struct Bits {
  int lowest, highest;

  explicit Bits(const KernelContext& c) {
    const auto bits = c.attr<std::int64_t>("num_bits");
    if (bits < 2 || bits > 16) {
      throw InvalidArgumentError(cat("num_bits must be between 2 and 16, inclusive, not ", bits));
    }
    lowest = c.attr<bool>("narrow_range") ? 1 : 0;
    highest = (1 << bits) - 1;
  }
  Levels levels(float min, float max) const { return Levels(min, max, lowest, highest); }
};

Levels levels_of_args(const KernelContext& c) {
  const float min = c.attr<float>("min"), max = c.attr<float>("max");
  const Bits bits(c);
  if (!(min < max))
    throw InvalidArgumentError(cat("min has to be smaller than max, was: ", min, " >= ", max));
  return bits.levels(min, max);
}

// Inputs `first` and the one after, for each entry of the last axis or as scalars.
void check_ends(const KernelContext& c, int first, const Array& x, bool channels) {
  if (channels && x.rank() < 1) {
    throw InvalidArgumentError("Input must be at least 1D, got a scalar.");
  }
  const Shape wanted = channels ? Shape{x.shape()[x.rank() - 1]} : Shape{};
  for (int i = first; i < first + 2; ++i) {
    if (!(c.input(i).shape() == wanted)) {
      throw InvalidArgumentError(cat(i == first ? "min" : "max", " must have shape ", wanted,
                                     " but has ", c.input(i).shape()));
    }
  }
}

void check_same_shape(const Array& gradient, const Array& x) {
  if (!(gradient.shape() == x.shape())) {
    throw InvalidArgumentError(
        cat("gradient and input must be the same size: ", gradient.shape(), " and ", x.shape()));
  }
}

void round_row(const Levels& levels, const float* x, float* to, std::int64_t n, std::int64_t step) {
  for (std::int64_t i = 0; i < n; ++i) to[i * step] = levels.round(x[i * step]);
}

void args(KernelContext& c) {
  const Array& x = c.input(0);
  const Levels levels = levels_of_args(c);
  Array& out = c.allocate_output(0, x.shape());
  round_row(levels, x.data<float>(), out.data<float>(), x.num_elements(), 1);
}

void args_gradient(KernelContext& c) {
  const Array& gradient = c.input(0);
  const Array& x = c.input(1);
  check_same_shape(gradient, x);
  const Levels levels = levels_of_args(c);
  float* to = c.allocate_output(0, x.shape()).data<float>();
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    to[i] = levels.contains(x.data<float>()[i]) ? gradient.data<float>()[i] : 0;
  }
}

template <bool kChannels>
void vars(KernelContext& c) {
  const Array& x = c.input(0);
  const Bits bits(c);
  check_ends(c, 1, x, kChannels);
  Array& out = c.allocate_output(0, x.shape());
  const std::int64_t depth = c.input(1).num_elements();
  for (std::int64_t k = 0; k < depth; ++k) {
    const Levels levels = bits.levels(c.input(1).data<float>()[k], c.input(2).data<float>()[k]);
    round_row(levels, x.data<float>() + k, out.data<float>() + k, x.num_elements() / depth, depth);
  }
}

template <bool kChannels>
void vars_gradient(KernelContext& c) {
  const Array& gradient = c.input(0);
  const Array& x = c.input(1);
  check_same_shape(gradient, x);
  const Bits bits(c);
  check_ends(c, 2, x, kChannels);
  float* to = c.allocate_output(0, x.shape()).data<float>();
  float* to_min = c.allocate_output(1, c.input(2).shape()).data<float>();
  float* to_max = c.allocate_output(2, c.input(2).shape()).data<float>();
  const std::int64_t depth = c.input(2).num_elements();
  for (std::int64_t k = 0; k < depth; ++k) {
    const Levels levels = bits.levels(c.input(2).data<float>()[k], c.input(3).data<float>()[k]);
    float below = 0, above = 0;
    for (std::int64_t i = k; i < x.num_elements(); i += depth) {
      const float value = x.data<float>()[i], g = gradient.data<float>()[i];
      to[i] = levels.contains(value) ? g : 0;
      if (!levels.none && value < levels.low) below += g;
      if (!levels.none && value > levels.high) above += g;
    }
    to_min[k] = below;
    to_max[k] = above;
  }
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "FakeQuantWithMinMaxArgs", .run = args}),
    KernelRegistration({.op = "FakeQuantWithMinMaxArgsGradient", .run = args_gradient}),
    KernelRegistration({.op = "FakeQuantWithMinMaxVars", .run = vars<false>}),
    KernelRegistration({.op = "FakeQuantWithMinMaxVarsGradient", .run = vars_gradient<false>}),
    KernelRegistration({.op = "FakeQuantWithMinMaxVarsPerChannel", .run = vars<true>}),
    KernelRegistration(
        {.op = "FakeQuantWithMinMaxVarsPerChannelGradient", .run = vars_gradient<true>}),
};

}  // namespace
}  // namespace tandem::cpu
