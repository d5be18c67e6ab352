// QuantizeAndDequantize: rounding to levels at equal distances on both sides of zero.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/axis_view.h"
#include "tandem/kernels/cpu/int_input.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

// The values as entries of one axis, each with a range of its own; axis -1: all as one.
struct Entries {
  AxisView view{Shape{1}, 0};

  Entries(const KernelContext& c, const Array& x, int min_input) {
    const auto axis = c.attr<std::int64_t>("axis");
    if (axis < -1) {
      throw InvalidArgumentError(cat("Axis should be -1 or 0 or a positive value, got ", axis));
    }
    if (axis >= x.rank()) {
      throw InvalidArgumentError(
          cat("Axis should be -1 or less than the number of axes of the "
              "input: ",
              axis, " for ", x.shape()));
    }
    view = axis < 0 ? AxisView(Shape{1, x.num_elements()}, 0)
                    : AxisView(x.shape(), static_cast<int>(axis));
    for (int i = min_input; i < min_input + 2; ++i) {
      const Array& end = c.input(i);
      if (axis < 0 ? end.num_elements() != 1 : !(end.shape() == Shape{view.size})) {
        throw InvalidArgumentError(cat(i == min_input ? "input_min" : "input_max",
                                       axis < 0 ? " must be a scalar" : " must be a vector of ",
                                       axis < 0 ? std::string() : std::to_string(view.size),
                                       ", got shape ", end.shape()));
      }
    }
  }

  // f(place) for each element of entry k.
  template <class F>
  void for_each(std::int64_t k, F f) const {
    for (std::int64_t o = 0; o < view.outer; ++o) {
      const std::int64_t at = (o * view.size + k) * view.inner;
      for (std::int64_t i = at; i < at + view.inner; ++i) f(i);
    }
  }
};

template <class W>
struct Rounding {
  W min, max, scale, inverse;
  bool clamp, half_up;

  Rounding(W low, W high, bool is_signed, std::int64_t bits, bool narrow, bool clamp_,
           bool half_up_)
      : min(low), max(high), clamp(clamp_), half_up(half_up_) {
    const auto power = [](std::int64_t n) { return static_cast<W>(std::int64_t{1} << n); };
    const W lowest = !is_signed ? W(0) : narrow ? -power(bits - 1) + W(1) : -power(bits - 1);
    const W highest = (is_signed ? power(bits - 1) : power(bits)) - W(1);
    constexpr W kMost = std::numeric_limits<W>::max();
    const W from_min = lowest * min > 0 ? lowest / min : kMost;
    const W from_max = highest * max > 0 ? highest / max : kMost;
    if (from_min < from_max) {
      scale = from_min;
      inverse = min / lowest;
      max = highest * inverse;
    } else {
      scale = from_max;
      inverse = max / highest;
      min = lowest * inverse;
    }
  }
  W operator()(W x) const {
    if (clamp) x = std::min(std::max(x, min), max);
    return (half_up ? std::floor(x * scale + W(0.5)) : std::nearbyint(x * scale)) * inverse;
  }
};

void round_trip(KernelContext& c, std::int64_t bits, bool half_up) {
  const Array& x = c.input(0);
  const Entries entries(c, x, 1);
  const bool is_signed = c.attr<bool>("signed_input"), given = c.attr<bool>("range_given");
  const bool narrow = c.attr<bool>("narrow_range");
  if (bits <= 0 || bits >= (is_signed ? 62 : 63)) {
    throw InvalidArgumentError(
        cat("num_bits is out of range: ", bits, " with signed_input ", is_signed));
  }
  Array& out = c.allocate_output(0, x.shape());
  if (x.num_elements() == 0) return;
  with_floating(x.dtype(), [&]<class T>() {
    using W = Wide<T>;
    const T* from = x.data<T>();
    for (std::int64_t k = 0; k < entries.view.size; ++k) {
      W low = widen(c.input(1).data<T>()[given ? k : 0]);
      W high = widen(c.input(2).data<T>()[given ? k : 0]);
      if (given && !(low <= high)) {
        throw InvalidArgumentError(cat("Invalid range: input_min ", low, " > input_max ", high));
      }
      if (!given) {
        low = std::numeric_limits<W>::infinity();
        high = -low;
        entries.for_each(k, [&](std::int64_t i) {
          low = std::min(low, widen(from[i]));
          high = std::max(high, widen(from[i]));
        });
      }
      const Rounding<W> round(low, high, is_signed, bits, narrow, given, half_up);
      entries.for_each(
          k, [&](std::int64_t i) { out.data<T>()[i] = static_cast<T>(round(widen(from[i]))); });
    }
  });
}

void with_fixed_bits(KernelContext& c) {
  round_trip(c, c.attr<std::int64_t>("num_bits"), c.attr<std::string>("round_mode") == "HALF_UP");
}

void with_bits_input(KernelContext& c) { round_trip(c, scalar_int_input(c, 3, "num_bits"), false); }

void gradient(KernelContext& c) {
  const Array& grad = c.input(0);
  const Array& x = c.input(1);
  if (!(grad.shape() == x.shape())) {
    throw InvalidArgumentError(
        cat("gradient and input must be the same size: ", grad.shape(), " and ", x.shape()));
  }
  const Entries entries(c, x, 2);
  Array& to = c.allocate_output(0, x.shape());
  Array& to_min = c.allocate_output(1, c.input(2).shape());
  Array& to_max = c.allocate_output(2, c.input(3).shape());
  with_floating(x.dtype(), [&]<class T>() {
    using W = Wide<T>;
    for (std::int64_t k = 0; k < entries.view.size; ++k) {
      const W low = widen(c.input(2).data<T>()[k]), high = widen(c.input(3).data<T>()[k]);
      entries.for_each(k, [&](std::int64_t i) {
        const W value = widen(x.data<T>()[i]);
        to.data<T>()[i] = value >= low && value <= high ? grad.data<T>()[i] : T(0);
      });
      // As in TensorFlow, the ends of the range are not moved.
      to_min.data<T>()[k] = to_max.data<T>()[k] = T(0);
    }
  });
}

const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "QuantizeAndDequantizeV2", .run = with_fixed_bits}),
    KernelRegistration({.op = "QuantizeAndDequantizeV3", .run = with_bits_input}),
    KernelRegistration({.op = "QuantizeAndDequantizeV4", .run = with_fixed_bits}),
    KernelRegistration({.op = "QuantizeAndDequantizeV4Grad", .run = gradient}),
};

}  // namespace
}  // namespace tandem::cpu
