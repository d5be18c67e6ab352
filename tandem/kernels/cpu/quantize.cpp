// Floating values as integers of a range and back: QuantizeV2, Dequantize.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/axis_view.h"

namespace tandem::cpu {
namespace {

template <class F>
void quantized_switch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kQint8: return f.template operator()<std::int8_t>();
    case DType::kQuint8: return f.template operator()<std::uint8_t>();
    case DType::kQint16: return f.template operator()<std::int16_t>();
    case DType::kQuint16: return f.template operator()<std::uint16_t>();
    default: return f.template operator()<std::int32_t>();
  }
}

template <class T>
constexpr float lowest = static_cast<float>(std::numeric_limits<T>::lowest());
template <class T>
constexpr float highest = static_cast<float>(std::numeric_limits<T>::max());
template <class T>
constexpr double steps = static_cast<double>(std::int64_t{1} << (8 * sizeof(T)));

// The entries of the axis and their ranges, checked.
AxisView entries_of(const KernelContext& c, const Array& x) {
  const auto axis = c.attr<std::int64_t>("axis");
  if (axis < -1 || axis >= x.rank()) {
    throw InvalidArgumentError(
        cat("Axis must be -1 or one of the input's axes, got ", axis, " for ", x.shape()));
  }
  const AxisView view = axis < 0 ? AxisView(Shape{1, x.num_elements()}, 0)
                                 : AxisView(x.shape(), static_cast<int>(axis));
  for (int i = 1; i < 3; ++i) {
    const Array& end = c.input(i);
    if (axis < 0 ? end.num_elements() != 1 : !(end.shape() == Shape{view.size})) {
      throw InvalidArgumentError(cat(i == 1 ? "min_range" : "max_range",
                                     " must have one element for each range, got shape ",
                                     end.shape()));
    }
  }
  return view;
}

// f(place) for each element of entry k.
template <class F>
void for_each(const AxisView& view, std::int64_t k, F f) {
  for (std::int64_t o = 0; o < view.outer; ++o) {
    const std::int64_t at = (o * view.size + k) * view.inner;
    for (std::int64_t i = at; i < at + view.inner; ++i) f(i);
  }
}

// The nearest integer of T, also for what is none.
template <class T>
T saturated(double value) {
  if (!(value > static_cast<double>(std::numeric_limits<T>::lowest()))) {
    return std::numeric_limits<T>::lowest();
  }
  return value >= static_cast<double>(std::numeric_limits<T>::max()) ? std::numeric_limits<T>::max()
                                                                     : static_cast<T>(value);
}

template <class T>
struct Quantizer {
  std::string mode;
  bool to_even, narrow;
  float min, max;

  T operator()(float x) const {
    if (mode == "MIN_FIRST") {
      const double per_unit =
          (steps<T> - 1.0) / (static_cast<double>(max) - static_cast<double>(min));
      const double offset = std::round(static_cast<double>(min) * per_unit);
      return saturated<T>(std::round(static_cast<double>(x) * per_unit) - offset +
                          static_cast<double>(lowest<T>));
    }
    const float inside = std::min(std::max(x, min), max);
    if (mode == "SCALED") {
      const float scaled = inside * scale;
      return saturated<T>(
          static_cast<double>(to_even ? std::nearbyint(scaled) : std::round(scaled)));
    }
    const float spread = (highest<T> - lowest<T>) / (max - min);
    if (std::is_signed_v<T>) {
      const float half = (highest<T> - lowest<T> + 1) / 2.0f;
      return saturated<T>(static_cast<double>(std::round((inside - min) * spread - half)));
    }
    return saturated<T>(static_cast<double>(std::floor((inside - min) * spread + 0.5f)));
  }

  // For SCALED: the range that the integers cover.
  void set_scale() {
    const float least = lowest<T> + (narrow ? 1.0f : 0.0f);
    constexpr float kMost = std::numeric_limits<float>::max();
    const float from_min = least * min > 0 ? least / min : kMost;
    const float from_max = highest<T> * max > 0 ? highest<T> / max : kMost;
    scale = std::min(from_min, from_max);
    min = least / scale;
    max = highest<T> / scale;
  }
  float scale = 1;
};

void quantize(KernelContext& c) {
  const Array& x = c.input(0);
  const AxisView view = entries_of(c, x);
  const auto& mode = c.attr<std::string>("mode");
  const bool to_even = c.attr<std::string>("round_mode") == "HALF_TO_EVEN";
  if (to_even && mode != "SCALED") {
    throw InvalidArgumentError(
        cat("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', "
            "but mode is '",
            mode, "'."));
  }
  const float least = c.attr<float>("ensure_minimum_range");
  Array& out = c.allocate_output(0, x.shape());
  Array& out_min = c.allocate_output(1, c.input(1).shape());
  Array& out_max = c.allocate_output(2, c.input(2).shape());
  quantized_switch(out.dtype(), [&]<class T>() {
    for (std::int64_t k = 0; k < view.size; ++k) {
      const float low = c.input(1).data<float>()[k], high = c.input(2).data<float>()[k];
      if (low > high) {
        throw InvalidArgumentError(
            cat("min_range must not be larger than max_range: ", low, " > ", high));
      }
      Quantizer<T> quantizer{mode, to_even, c.attr<bool>("narrow_range"), 0, 0};
      quantizer.min = std::min(0.0f, low);
      const float room = std::max(1.0f, std::max(std::fabs(low), std::fabs(high))) * least;
      quantizer.max = std::max(0.0f, std::max(high, quantizer.min + room));
      if (mode == "SCALED") quantizer.set_scale();
      const float* from = x.data<float>();
      for_each(view, k, [&](std::int64_t i) { out.data<T>()[i] = quantizer(from[i]); });
      out_min.data<float>()[k] = quantizer.min;
      out_max.data<float>()[k] = quantizer.max;
    }
  });
}

template <class T>
struct Dequantizer {
  float scale, offset, shift;  // (x + shift) * scale + offset

  Dequantizer(const std::string& mode, bool narrow, float min, float max) {
    if (mode == "MIN_COMBINED") {
      scale = (max - min) / (highest<T> - lowest<T>);
      offset = min;
      shift = std::is_signed_v<T> ? (highest<T> - lowest<T> + 1) / 2.0f : 0.0f;
    } else if (mode == "MIN_FIRST") {
      scale = static_cast<float>((static_cast<double>(max) - static_cast<double>(min)) /
                                 (steps<T> - 1.0));
      offset = max == min ? min : std::round(min / scale) * scale;
      shift = -lowest<T>;
    } else {
      const float least = lowest<T> + (narrow ? 1.0f : 0.0f);
      scale = lowest<T> == 0 ? max / highest<T> : std::max(min / least, max / highest<T>);
      offset = shift = 0;
    }
  }
  float operator()(T x) const { return (static_cast<float>(x) + shift) * scale + offset; }
};

void dequantize(KernelContext& c) {
  const Array& x = c.input(0);
  const AxisView view = entries_of(c, x);
  const auto& mode = c.attr<std::string>("mode");
  Array& out = c.allocate_output(0, x.shape());
  quantized_switch(x.dtype(), [&]<class T>() {
    for (std::int64_t k = 0; k < view.size; ++k) {
      const Dequantizer<T> value(mode, c.attr<bool>("narrow_range"), c.input(1).data<float>()[k],
                                 c.input(2).data<float>()[k]);
      for_each(view, k, [&](std::int64_t i) {
        const float result = value(x.data<T>()[i]);
        if (out.dtype() == DType::kFloat) {
          out.data<float>()[i] = result;
        } else {
          out.data<BFloat16>()[i] = BFloat16(result);
        }
      });
    }
  });
}

const KernelRegistration kQuantize{{.op = "QuantizeV2", .run = quantize}};
const KernelRegistration kDequantize{{.op = "Dequantize", .run = dequantize}};

}  // namespace
}  // namespace tandem::cpu
