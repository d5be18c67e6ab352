// Rounding to the levels of integers: the FakeQuant family.

#include "tandem/kernels/cuda/support/kernel_call.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

struct Bits {
  float lowest, highest;
};

// The levels for a range, moved so that zero is one of them.
struct Levels {
  float low, high, scale;
  bool none;  // an empty range around zero
  TANDEM_DEVICE Levels(float min, float max, Bits bits) : none(min == 0 && max == 0) {
    scale = (max - min) / (bits.highest - bits.lowest);
    const float zero = bits.lowest - min / scale;
    const float nudged = zero < bits.lowest    ? bits.lowest
                         : zero > bits.highest ? bits.highest
                                               : std::round(zero);
    low = (bits.lowest - nudged) * scale;
    high = (bits.highest - nudged) * scale;
  }
  TANDEM_DEVICE float rounded(float x) const {
    if (none) return 0;
    const float inverse = 1.0f / scale;
    const float clamped = x < low ? low : (x > high ? high : x);
    const float zero = std::floor(-low * inverse + 0.5f);
    return std::floor((clamped - low) * inverse - zero + 0.5f) * scale;
  }
  TANDEM_DEVICE bool contains(float x) const { return none || (x >= low && x <= high); }
};

// A range for each of `channels` of the last axis, from memory or, without, as given.
struct Range {
  const float* min = nullptr;
  const float* max = nullptr;
  float given_min = 0, given_max = 0;
  std::int64_t channels = 1;
  Bits bits;
  TANDEM_DEVICE Levels levels(std::int64_t channel) const {
    return min ? Levels(min[channel], max[channel], bits) : Levels(given_min, given_max, bits);
  }
};

TANDEM_KERNEL fake_quant_kernel(const float* x, float* y, std::int64_t n, Range range) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>())
    y[i] = range.levels(i % range.channels).rounded(x[i]);
}

TANDEM_KERNEL fake_quant_gradient_kernel(const float* g, const float* x, float* y, std::int64_t n,
                                         Range range) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>())
    y[i] = range.levels(i % range.channels).contains(x[i]) ? g[i] : 0.0f;
}

// A block sums what lies below and above the range of a channel.
TANDEM_KERNEL fake_quant_ends_kernel(const float* g, const float* x, float* of_min, float* of_max,
                                     std::int64_t n, Range range) {
  const auto add = [](float a, float b) { return a + b; };
  for (std::int64_t channel = blockIdx.x; channel < range.channels; channel += gridDim.x) {
    const Levels levels = range.levels(channel);
    float below = 0, above = 0;
    for (std::int64_t i = channel + threadIdx.x * range.channels; i < n;
         i += blockDim.x * range.channels) {
      if (levels.none) continue;
      if (x[i] < levels.low) below += g[i];
      if (x[i] > levels.high) above += g[i];
    }
    below = block_reduce_all(below, 0.0f, add);
    above = block_reduce_all(above, 0.0f, add);
    if (threadIdx.x == 0) {
      of_min[channel] = below;
      of_max[channel] = above;
    }
  }
}

Bits bits_of(const KernelCall& call) {
  const std::int64_t bits = call.attr_int("num_bits");
  if (bits < 2 || bits > 16)
    refuse("num_bits must be between 2 and 16, inclusive, not " + std::to_string(bits));
  return {call.attr_bool("narrow_range") ? 1.0f : 0.0f, static_cast<float>((1 << bits) - 1)};
}

Range range_of_args(const KernelCall& call) {
  Range range;
  range.bits = bits_of(call);
  range.given_min = call.attr_float("min");
  range.given_max = call.attr_float("max");
  if (!(range.given_min < range.given_max)) refuse("min has to be smaller than max");
  return range;
}

Range range_of_inputs(const KernelCall& call, int first, const TensorView& x, bool channels) {
  if (channels && x.rank() < 1) refuse("Input must be at least 1D, got a scalar.");
  Range range;
  range.bits = bits_of(call);
  const Sizes wanted = channels ? Sizes{x.sizes.back()} : Sizes{};
  const TensorView min = call.input(first), max = call.input(first + 1);
  if (min.sizes != wanted) refuse("min has a wrong shape");
  if (max.sizes != wanted) refuse("max has a wrong shape");
  range.min = min.as<float>();
  range.max = max.as<float>();
  range.channels = channels ? wanted[0] : 1;
  return range;
}

void forward(KernelCall& call, const TensorView& x, const Range& range) {
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  TANDEM_LAUNCH(fake_quant_kernel, shape_for(y.count), 0, x.as<float>(), y.as<float>(), y.count,
                range);
}

void gradient(KernelCall& call, const TensorView& g, const TensorView& x, const Range& range) {
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  TANDEM_LAUNCH(fake_quant_gradient_kernel, shape_for(y.count), 0, g.as<float>(), x.as<float>(),
                y.as<float>(), y.count, range);
}

void check_same(const TensorView& g, const TensorView& x) {
  if (g.sizes != x.sizes) refuse("gradient and input must be the same size");
}

void gradients(KernelCall& call, bool channels) {
  const TensorView g = call.input(0), x = call.input(1);
  check_same(g, x);
  const Range range = range_of_inputs(call, 2, x, channels);
  gradient(call, g, x, range);
  const Sizes ends = channels ? Sizes{range.channels} : Sizes{};
  const TensorView of_min = call.allocate_output(1, ends), of_max = call.allocate_output(2, ends);
  if (of_min.count == 0) return;
  TANDEM_LAUNCH(fake_quant_ends_kernel, rows_shape(range.channels, default_block()), 0,
                g.as<float>(), x.as<float>(), of_min.as<float>(), of_max.as<float>(), x.count,
                range);
}

}  // namespace

void quantize_fake_args(KernelCall& call) { forward(call, call.input(0), range_of_args(call)); }
void quantize_fake_args_gradient(KernelCall& call) {
  check_same(call.input(0), call.input(1));
  gradient(call, call.input(0), call.input(1), range_of_args(call));
}
void quantize_fake_vars(KernelCall& call) {
  forward(call, call.input(0), range_of_inputs(call, 1, call.input(0), false));
}
void quantize_fake_channels(KernelCall& call) {
  forward(call, call.input(0), range_of_inputs(call, 1, call.input(0), true));
}
void quantize_fake_vars_gradient(KernelCall& call) { gradients(call, false); }
void quantize_fake_channels_gradient(KernelCall& call) { gradients(call, true); }

}  // namespace tandem::cuda
