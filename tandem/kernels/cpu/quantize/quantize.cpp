// Floating values as integers of a range and back: QuantizeV2, Dequantize.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/axis_runs.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/quantize/quantize_rows.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements at once, through memory that stays near

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

// Integers to the dtype that holds them, floats from such: in pieces of a constant size, which
// compilers turn into vector instructions.
template <class To, class From>
void convert_row(const From* from, To* to, std::int64_t n) {
  constexpr std::int64_t kPiece = 16;
  std::int64_t i = 0;
  for (; i + kPiece <= n; i += kPiece) {
    To piece[kPiece];
    for (std::int64_t k = 0; k < kPiece; ++k) piece[k] = static_cast<To>(from[i + k]);
    for (std::int64_t k = 0; k < kPiece; ++k) to[i + k] = piece[k];
  }
  for (; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

// The range of one entry: as asked for, then as the integers cover it.
struct Range {
  float min, max;

  Range(float low, float high, float least) {
    if (low > high) {
      throw InvalidArgumentError(
          cat("min_range must not be larger than max_range: ", low, " > ", high));
    }
    min = std::min(0.0f, low);
    const float room = std::max(1.0f, std::max(std::fabs(low), std::fabs(high))) * least;
    max = std::max(0.0f, std::max(high, min + room));
  }
};

template <class T>
QuantizeWideRow min_first_row(const Range& range) {
  const double low = range.min, high = range.max;
  QuantizeWideRow row;
  row.scale = (steps<T> - 1.0) / (high - low);
  row.offset = std::round(low * row.scale);
  row.lowest = std::numeric_limits<T>::lowest();
  row.highest = std::numeric_limits<T>::max();
  return row;
}

// Both ends move to where the integers end.
template <class T>
QuantizeRow scaled_row(Range& range, bool narrow, bool to_even) {
  const float least = lowest<T> + (narrow ? 1.0f : 0.0f);
  constexpr float kMax = std::numeric_limits<float>::max();
  const float from_min = least * range.min > 0 ? least / range.min : kMax;
  const float from_max = highest<T> * range.max > 0 ? highest<T> / range.max : kMax;
  const float scale = std::min(from_min, from_max);
  range.min = least / scale;
  range.max = highest<T> / scale;
  return {to_even ? Rounding::kToEven : Rounding::kAwayFromZero,
          range.min,
          range.max,
          0,
          scale,
          0,
          lowest<T>,
          highest<T>};
}

template <class T>
QuantizeRow min_combined_row(const Range& range) {
  const float scale = (highest<T> - lowest<T>) / (range.max - range.min);
  const float half = (highest<T> - lowest<T> + 1) / 2.0f;
  return {std::is_signed_v<T> ? Rounding::kAwayFromZero : Rounding::kDown,
          range.min,
          range.max,
          range.min,
          scale,
          std::is_signed_v<T> ? -half : 0.5f,
          lowest<T>,
          highest<T>};
}

template <class T, class Row>
void quantize_entries(IntraOpPool& pool, const AxisView& view, const std::vector<Row>& rows,
                      const float* x, T* to) {
  for_each_run(pool, view, kBlock, 0.5, [&](std::int64_t k, std::int64_t at, std::int64_t n) {
    const Row& row = rows[static_cast<std::size_t>(k)];
    if constexpr (std::is_same_v<T, std::int32_t>) {
      quantize_row(row, x + at, to + at, n);
    } else {
      std::int32_t values[kBlock];
      quantize_row(row, x + at, values, n);
      convert_row(values, to + at, n);
    }
  });
}

// Output 0 by the rows that make(range) gives; it may change the range, which is outputs 1 and 2.
template <class T, class Make>
void quantize_by(KernelContext& c, const AxisView& view, const Make& make) {
  const Array& x = c.input(0);
  const float least = c.attr<float>("ensure_minimum_range");
  Array& out = c.allocate_output(0, x.shape());
  const bool one = c.attr<std::int64_t>("axis") < 0;  // range for all, which is a scalar then
  const auto range_output = [&](int i) {
    return c.allocate_output(i, one ? Shape{} : c.input(i).shape()).template data<float>();
  };
  float* const min = range_output(1);
  float* const max = range_output(2);
  std::vector<decltype(make(std::declval<Range&>()))> rows;
  for (std::int64_t k = 0; k < view.size; ++k) {
    Range range(c.input(1).data<float>()[k], c.input(2).data<float>()[k], least);
    rows.push_back(make(range));
    min[k] = range.min;
    max[k] = range.max;
  }
  quantize_entries(c.intra_op(), view, rows, x.data<float>(), out.data<T>());
}

void quantize(KernelContext& c) {
  const AxisView view = entries_of(c, c.input(0));
  const auto& mode = c.attr<std::string>("mode");
  const bool to_even = c.attr<std::string>("round_mode") == "HALF_TO_EVEN";
  const bool narrow = c.attr<bool>("narrow_range");
  if (to_even && mode != "SCALED") {
    throw InvalidArgumentError(
        cat("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', "
            "but mode is '",
            mode, "'."));
  }
  quantized_switch(c.output_dtype(0), [&]<class T>() {
    if (mode == "MIN_FIRST") {
      quantize_by<T>(c, view, [](const Range& range) { return min_first_row<T>(range); });
    } else if (mode == "SCALED") {
      quantize_by<T>(c, view, [=](Range& range) { return scaled_row<T>(range, narrow, to_even); });
    } else {
      quantize_by<T>(c, view, [](const Range& range) { return min_combined_row<T>(range); });
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
  void row(const T* x, float* to, std::int64_t n) const {
    constexpr std::int64_t kPiece = 16;  // a constant count becomes vector instructions
    const Dequantizer by = *this;
    convert_row(x, to, n);
    std::int64_t i = 0;
    for (; i + kPiece <= n; i += kPiece) {
      for (std::int64_t k = 0; k < kPiece; ++k) to[i + k] = by.value(to[i + k]);
    }
    for (; i < n; ++i) to[i] = by.value(to[i]);
  }

 private:
  float value(float x) const { return (x + shift) * scale + offset; }
};

void dequantize(KernelContext& c) {
  const Array& x = c.input(0);
  const AxisView view = entries_of(c, x);
  const auto& mode = c.attr<std::string>("mode");
  const bool narrow = c.attr<bool>("narrow_range");
  Array& out = c.allocate_output(0, x.shape());
  quantized_switch(x.dtype(), [&]<class T>() {
    std::vector<Dequantizer<T>> entries;
    for (std::int64_t k = 0; k < view.size; ++k) {
      entries.emplace_back(mode, narrow, c.input(1).data<float>()[k], c.input(2).data<float>()[k]);
    }
    const auto run = [&](std::int64_t k, std::int64_t at, std::int64_t n) {
      const Dequantizer<T>& entry = entries[static_cast<std::size_t>(k)];
      const T* const from = x.data<T>() + at;
      if (out.dtype() == DType::kFloat) return entry.row(from, out.data<float>() + at, n);
      float values[kBlock];
      entry.row(from, values, n);
      from_floats(values, out.data<BFloat16>() + at, n);
    };
    for_each_run(c.intra_op(), view, kBlock, 0.3, run);
  });
}

const KernelRegistration kQuantize{{.op = "QuantizeV2", .run = quantize}};
const KernelRegistration kDequantize{{.op = "Dequantize", .run = dequantize}};

}  // namespace
}  // namespace tandem::cpu
