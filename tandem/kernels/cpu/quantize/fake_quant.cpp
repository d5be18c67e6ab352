// Rounding to the levels of integers: the FakeQuant family.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/ragged/level_rows.h"

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

// The numbers for rounding to the levels of each channel, the channels repeated until they fill
// rows of some length.
class ChannelLevels {
 public:
  explicit ChannelLevels(const std::vector<Levels>& channels) {
    constexpr std::size_t kLength = 256;
    const std::size_t depth = channels.size();
    const std::size_t repeats = depth == 0 ? 0 : (kLength + depth - 1) / depth;
    for (std::size_t i = 0; i < repeats * depth; ++i) {
      const Levels& levels = channels[i % depth];
      const float inverse = 1.0f / levels.scale;
      low_.push_back(levels.low);
      high_.push_back(levels.high);
      scale_.push_back(levels.scale);
      inverse_.push_back(inverse);
      zero_.push_back(std::floor(-levels.low * inverse + 0.5f));
      if (levels.none) none_.push_back(i);
    }
  }

  void round(IntraOpPool& pool, const float* x, float* to, std::int64_t n) const {
    const auto length = static_cast<std::int64_t>(low_.size());
    if (n == 0) return;
    const std::int64_t rows = (n + length - 1) / length;
    pool.parallel_for(rows, 0.3 * static_cast<double>(length),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t r = begin; r < end; ++r) {
                          const std::int64_t at = r * length;
                          round_row(x + at, to + at, std::min(length, n - at));
                        }
                      });
  }

 private:
  void round_row(const float* x, float* to, std::int64_t n) const {
    round_to_levels({low_.data(), high_.data(), scale_.data(), inverse_.data(), zero_.data()}, x,
                    to, n);
    for (const std::size_t at : none_) {
      if (static_cast<std::int64_t>(at) < n) to[at] = 0;
    }
  }

  std::vector<float> low_, high_, scale_, inverse_, zero_;
  std::vector<std::size_t> none_;
};

void args(KernelContext& c) {
  const Array& x = c.input(0);
  const ChannelLevels levels({levels_of_args(c)});
  Array& out = c.allocate_output(0, x.shape());
  levels.round(c.intra_op(), x.data<float>(), out.data<float>(), x.num_elements());
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

// From the ends in inputs `first` and the one after.
std::vector<Levels> levels_of_vars(const KernelContext& c, int first, const Bits& bits) {
  std::vector<Levels> channels;
  channels.reserve(static_cast<std::size_t>(c.input(first).num_elements()));
  for (std::int64_t k = 0; k < c.input(first).num_elements(); ++k) {
    channels.push_back(
        bits.levels(c.input(first).data<float>()[k], c.input(first + 1).data<float>()[k]));
  }
  return channels;
}

template <bool kChannels>
void vars(KernelContext& c) {
  const Array& x = c.input(0);
  const Bits bits(c);
  check_ends(c, 1, x, kChannels);
  Array& out = c.allocate_output(0, x.shape());
  const ChannelLevels levels(levels_of_vars(c, 1, bits));
  levels.round(c.intra_op(), x.data<float>(), out.data<float>(), x.num_elements());
}

template <bool kChannels>
void vars_gradient(KernelContext& c) {
  const Array& gradient = c.input(0);
  const Array& x = c.input(1);
  check_same_shape(gradient, x);
  const Bits bits(c);
  check_ends(c, 2, x, kChannels);
  float* to = c.allocate_output(0, x.shape()).data<float>();
  float* below = c.allocate_output(1, c.input(2).shape()).data<float>();
  float* above = c.allocate_output(2, c.input(2).shape()).data<float>();
  const std::vector<Levels> channels = levels_of_vars(c, 2, bits);
  const std::size_t depth = channels.size();
  std::fill(below, below + depth, 0.0f);
  std::fill(above, above + depth, 0.0f);
  const float *value = x.data<float>(), *g = gradient.data<float>();
  const std::int64_t rows = depth == 0 ? 0 : x.num_elements() / static_cast<std::int64_t>(depth);
  for (std::int64_t r = 0; r < rows; ++r, value += depth, g += depth, to += depth) {
    for (std::size_t k = 0; k < depth; ++k) {
      const Levels& levels = channels[k];
      to[k] = levels.contains(value[k]) ? g[k] : 0;
      below[k] += !levels.none && value[k] < levels.low ? g[k] : 0;
      above[k] += !levels.none && value[k] > levels.high ? g[k] : 0;
    }
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
