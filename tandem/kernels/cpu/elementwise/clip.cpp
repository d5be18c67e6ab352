// ClipByValue.

#include <algorithm>
#include <cstdint>

#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;  // elements at once: four rows of them fit the nearest cache

// A bound's values for a block of elements: where they lie, converted, or one repeated.
template <class T>
class Bound {
 public:
  Bound(const Array& bound, std::int64_t longest)
      : values_(bound.data<T>()), scalar_(bound.rank() == 0) {
    if (scalar_) std::fill_n(block_, std::min(longest, kBlock), static_cast<Compute<T>>(*values_));
  }
  const Compute<T>* row(std::int64_t at, std::int64_t n) {
    if (scalar_) return block_;
    if constexpr (is_float16<T>) {
      to_floats(values_ + at, block_, n);
      return block_;
    } else {
      return values_ + at;
    }
  }

 private:
  const T* values_;
  bool scalar_;
  Compute<T> block_[kBlock];
};

// A bound that is NaN bounds nothing, and NaN stays. `out` may be x.
template <class T>
void clip_row(const T* x, const T* low, const T* high, T* out, std::int64_t n) {
  constexpr int kPiece = 16;  // a constant count is what compilers turn into vector instructions
  const auto clip_one = [=](std::int64_t i) {
    const T below = high[i] < x[i] ? high[i] : x[i];
    return below < low[i] ? low[i] : below;
  };
  std::int64_t i = 0;
  for (; i + kPiece <= n; i += kPiece) {
    T piece[kPiece];
    for (int k = 0; k < kPiece; ++k) piece[k] = clip_one(i + k);
    for (int k = 0; k < kPiece; ++k) out[i + k] = piece[k];
  }
  for (; i < n; ++i) out[i] = clip_one(i);
}

template <class T>
void clip_range(const Array& x, const Array& least, const Array& most, Array& out,
                std::int64_t begin, std::int64_t end) {
  Bound<T> low(least, end - begin), high(most, end - begin);
  const T* const from = x.data<T>();
  T* const to = out.data<T>();
  for (std::int64_t at = begin; at < end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, end - at);
    const Compute<T>* const lows = low.row(at, n);
    const Compute<T>* const highs = high.row(at, n);
    if constexpr (is_float16<T>) {
      float values[kBlock];
      to_floats(from + at, values, n);
      clip_row(values, lows, highs, values, n);
      from_floats(values, to + at, n);
    } else {
      clip_row(from + at, lows, highs, to + at, n);
    }
  }
}

void clip_by_value(KernelContext& c) {
  const Array& x = c.input(0);
  const Shape& low_shape = c.input(1).shape();
  const Shape& high_shape = c.input(2).shape();
  const auto fits = [&x](const Shape& s) { return s.rank() == 0 || s == x.shape(); };
  if (!fits(low_shape) || !fits(high_shape)) {
    throw InvalidArgumentError(cat(
        "clip_value_min and clip_value_max must be either of the same shape as input, or a "
        "scalar. input shape: ",
        x.shape(), " clip_value_min shape: ", low_shape, " clip_value_max shape: ", high_shape));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  with_real(x.dtype(), [&]<class T>() {
    c.intra_op().parallel_for(x.num_elements(), 0.5, [&](std::int64_t begin, std::int64_t end) {
      clip_range<T>(x, c.input(1), c.input(2), out, begin, end);
    });
  });
}

const KernelRegistration kClip{
    {.op = "ClipByValue", .types = {{"T", kRealTypes}}, .run = clip_by_value}};

}  // namespace
}  // namespace tandem::cpu
