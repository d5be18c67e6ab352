// QuantizeAndDequantize: rounding to levels at equal distances on both sides of zero.

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/axis_runs.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/quantize/quantize_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements at once, through memory that stays near

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
};

// Half and bfloat16 pass through these a block at a time.
template <class T>
const Wide<T>* widened(const T* from, [[maybe_unused]] Wide<T>* block, std::int64_t n) {
  if constexpr (is_float16<T>) {
    to_floats(from, block, n);
    return block;
  } else {
    return from;
  }
}

template <class W>
RoundTripRow<W> row_for(W min, W max, bool is_signed, std::int64_t bits, bool narrow) {
  const auto power = [](std::int64_t n) { return static_cast<W>(std::int64_t{1} << n); };
  const W lowest = !is_signed ? W(0) : narrow ? -power(bits - 1) + W(1) : -power(bits - 1);
  const W highest = (is_signed ? power(bits - 1) : power(bits)) - W(1);
  constexpr W kMax = std::numeric_limits<W>::max();
  const W from_min = lowest * min > 0 ? lowest / min : kMax;
  const W from_max = highest * max > 0 ? highest / max : kMax;
  RoundTripRow<W> row;
  if (from_min < from_max) {
    row.scale = from_min;
    row.inverse = min / lowest;
    row.min = min;
    row.max = highest * row.inverse;
  } else {
    row.scale = from_max;
    row.inverse = max / highest;
    row.min = lowest * row.inverse;
    row.max = max;
  }
  return row;
}

// The ends of each entry's elements. In pieces of a fixed size: which of two zeros is an end must
// not depend on the number of threads.
template <class T>
void find_ends(const T* x, const AxisView& view, std::int64_t k, Wide<T>& low, Wide<T>& high,
               IntraOpPool& pool) {
  using W = Wide<T>;
  constexpr std::int64_t kPiece = 16 * kBlock;
  const std::int64_t per_row = (view.inner + kPiece - 1) / kPiece;
  const W none = std::numeric_limits<W>::infinity();
  std::vector<W> lows(static_cast<std::size_t>(per_row), none);
  std::vector<W> highs(static_cast<std::size_t>(per_row), -none);
  const auto piece = [&](std::int64_t p, std::int64_t) {
    W least = none, most = -none;
    for (std::int64_t o = 0; o < view.outer; ++o) {
      const T* const row = x + (o * view.size + k) * view.inner;
      const std::int64_t end = std::min(view.inner, (p + 1) * kPiece);
      for (std::int64_t at = p * kPiece; at < end; at += kBlock) {
        W block[kBlock];
        const std::int64_t n = std::min(kBlock, end - at);
        extend_range(widened(row + at, block, n), n, least, most);
      }
    }
    lows[static_cast<std::size_t>(p)] = least;
    highs[static_cast<std::size_t>(p)] = most;
  };
  if (per_row == 1) {
    piece(0, 1);
  } else {
    pool.for_each_piece(per_row, piece);
  }
  low = *std::min_element(lows.begin(), lows.end());
  high = *std::max_element(highs.begin(), highs.end());
}

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
    const T* const from = x.data<T>();
    T* const to = out.data<T>();
    std::vector<RoundTripRow<W>> rows;
    for (std::int64_t k = 0; k < entries.view.size; ++k) {
      W low = widen(c.input(1).data<T>()[given ? k : 0]);
      W high = widen(c.input(2).data<T>()[given ? k : 0]);
      if (given && !(low <= high)) {
        throw InvalidArgumentError(cat("Invalid range: input_min ", low, " > input_max ", high));
      }
      if (!given) find_ends(from, entries.view, k, low, high, c.intra_op());
      rows.push_back(row_for(low, high, is_signed, bits, narrow));
      rows.back().half_up = half_up;
      if (given) continue;
      rows.back().max = std::numeric_limits<W>::infinity();  // no element is outside
      rows.back().min = -rows.back().max;
    }
    const auto run = [&](std::int64_t k, std::int64_t at, std::int64_t n) {
      const RoundTripRow<W>& row = rows[static_cast<std::size_t>(k)];
      if constexpr (is_float16<T>) {
        float block[kBlock], rounded[kBlock];
        round_trip_row(row, widened(from + at, block, n), rounded, n);
        from_floats(rounded, to + at, n);
      } else {
        round_trip_row(row, from + at, to + at, n);
      }
    };
    for_each_run(c.intra_op(), entries.view, kBlock, 0.5, run);
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
    const T *const values = x.data<T>(), *const from = grad.data<T>();
    T* const out = to.data<T>();
    const T *const lows = c.input(2).data<T>(), *const highs = c.input(3).data<T>();
    const auto run = [&](std::int64_t k, std::int64_t at, std::int64_t n) {
      const auto low = widen(lows[k]), high = widen(highs[k]);
      for (std::int64_t i = at; i < at + n; ++i) {
        const auto value = widen(values[i]);
        out[i] = value >= low && value <= high ? from[i] : T(0);
      }
    };
    for_each_run(c.intra_op(), entries.view, kBlock, 1, run);
    // Like in TensorFlow, the ends of the range are not moved.
    std::fill_n(to_min.data<T>(), entries.view.size, T(0));
    std::fill_n(to_max.data<T>(), entries.view.size, T(0));
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
