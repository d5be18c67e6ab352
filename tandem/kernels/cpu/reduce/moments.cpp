// _Moments, and the moments of batch normalisation.

#include "tandem/kernels/cpu/reduce/moments.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/core/half.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/norm/channel_rows.h"
#include "tandem/kernels/cpu/norm/float_blocks.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

// The moments of some rows: for each channel the mean, and the sum of the squares of what differs
// from it.
class RowMoments {
 public:
  RowMoments(const Channels& d, double* means, double* squares)
      : d_(d),
        means_(means),
        squares_(squares),
        floats_(static_cast<std::size_t>(3 * d.channels), 0.0f) {
    std::fill(means_, means_ + d_.channels, 0.0);
    std::fill(squares_, squares_ + d_.channels, 0.0);
  }

  void add(const float* values, std::int64_t rows) {
    if (rows_ == 0) find_shift(values, rows);
    if (d_.inner == 1) {
      deviation_rows(values, shift(), sums(), sums_of_squares(), rows, d_.channels);
    } else {
      for_each_run(d_, rows, [&](std::int64_t offset, std::int64_t channel) {
        deviation_run(values + offset, shift()[channel], sums() + channel,
                      sums_of_squares() + channel, d_.inner);
      });
    }
    rows_ += rows;
    in_float_ += rows * d_.inner;
    if (in_float_ >= kMaxInFloat) flush();
  }
  void end() {
    flush();
    const double share = 1 / static_cast<double>(rows_ * d_.inner);
    for (std::int64_t i = 0; i < d_.channels; ++i) {
      const double missed = means_[i] * share;
      const double squares = squares_[i] - means_[i] * missed;
      squares_[i] = squares < 0 ? 0 : squares;  // NaN stays
      means_[i] = static_cast<double>(shift()[i]) + missed;
    }
  }

 private:
  static constexpr std::int64_t kMaxInFloat = 256;  // values that a float adds up

  float* shift() { return floats_.data(); }
  float* sums() { return shift() + d_.channels; }
  float* sums_of_squares() { return sums() + d_.channels; }

  // The mean of the first rows. It need not be that of all: what it lacks comes out in the end.
  void find_shift(const float* values, std::int64_t rows) {
    float* const mean = shift();
    if (d_.inner == 1) {
      sum_rows(values, mean, rows, d_.channels);
    } else {
      for_each_run(d_, rows, [&](std::int64_t offset, std::int64_t channel) {
        sum_run(values + offset, mean + channel, d_.inner);
      });
    }
    const auto count = static_cast<float>(rows * d_.inner);
    for (std::int64_t i = 0; i < d_.channels; ++i) {
      mean[i] /= count;
      if (!std::isfinite(mean[i])) mean[i] = 0;  // so that infinities stay infinite
    }
  }
  void flush() {
    for (std::int64_t i = 0; i < d_.channels; ++i) {
      means_[i] += static_cast<double>(sums()[i]);
      squares_[i] += static_cast<double>(sums_of_squares()[i]);
    }
    std::fill(sums(), sums() + 2 * d_.channels, 0.0f);
    in_float_ = 0;
  }

  const Channels d_;
  double* const means_;  // until `end`: sums
  double* const squares_;
  std::vector<float> floats_;
  std::int64_t rows_ = 0, in_float_ = 0;
};

// The moments of all pieces, of channels [begin, end), into those of the first: Chan, Golub and
// LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
void join_moments(const Channels& d, const Pieces& pieces, double* all, std::int64_t begin,
                  std::int64_t end) {
  double* const means = all;
  double* const squares = all + d.channels;
  auto count = static_cast<double>(std::min(d.outer, pieces.rows) * d.inner);
  for (std::int64_t p = 1; p < pieces.count; ++p) {
    const std::int64_t rows = std::min(d.outer, (p + 1) * pieces.rows) - p * pieces.rows;
    const auto own = static_cast<double>(rows * d.inner);
    const double share = own / (count + own), weight = count * share;
    const double* const part = all + p * 2 * d.channels;
    for (std::int64_t i = begin; i < end; ++i) {
      const double apart = part[i] - means[i];
      if (!std::isfinite(apart)) {  // infinities stay infinite, unless they are of both signs
        means[i] += part[i];
        squares[i] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      squares[i] += part[d.channels + i] + apart * apart * weight;
      means[i] += apart * share;
    }
    count += own;
  }
}

template <class T>
void moments_of(KernelContext& c, const Channels& d, const T* x, float* mean, float* variance) {
  const Pieces pieces = Pieces::of(d);
  const Array parts = c.allocate_temp(DType::kDouble, Shape{pieces.count, 2, d.channels});
  double* const all = parts.data<double>();
  c.intra_op().for_each_piece(pieces.count, [&](std::int64_t first, std::int64_t last) {
    Reader<T> in(c, rows_at_once(d) * d.row());
    for (std::int64_t p = first; p < last; ++p) {
      double* const means = all + p * 2 * d.channels;
      RowMoments moments(d, means, means + d.channels);
      in_blocks(d, p * pieces.rows, std::min(d.outer, (p + 1) * pieces.rows),
                [&](std::int64_t at, std::int64_t rows) {
                  moments.add(in.floats(x + at, rows * d.row()), rows);
                });
      moments.end();
    }
  });
  c.intra_op().parallel_for(d.channels, 4 * Pieces::kMergeCost * static_cast<double>(pieces.count),
                            [&](std::int64_t begin, std::int64_t end) {
                              join_moments(d, pieces, all, begin, end);
                              for (std::int64_t i = begin; i < end; ++i) {
                                mean[i] = static_cast<float>(all[i]);
                                variance[i] = static_cast<float>(
                                    all[d.channels + i] / static_cast<double>(d.outer * d.inner));
                              }
                            });
}

Shape moments_shape(const Shape& of, bool keep_dims) {
  const std::int64_t channels = of[of.rank() - 1];
  if (!keep_dims) return Shape{channels};
  std::vector<std::int64_t> dims(static_cast<std::size_t>(of.rank()), 1);
  dims.back() = channels;
  return Shape(dims);
}

void moments(KernelContext& c) {
  const Array& x = c.input(0);
  if (x.rank() < 2) {
    throw InvalidArgumentError(
        cat("x must have an axis to go and one to stay, but has shape ", x.shape(), "."));
  }
  const Channels d{x.shape().product(0, x.rank() - 1), x.shape()[x.rank() - 1], 1};
  const char* const names[] = {"keep_mean_dims", "keep_variance_dims"};
  Array results[2];  // in float
  for (int i = 0; i < 2; ++i) {
    Array& out = c.allocate_output(i, moments_shape(x.shape(), c.attr<bool>(names[i])));
    const bool is_float = out.dtype() == DType::kFloat;
    results[i] = is_float ? out : c.allocate_temp(DType::kFloat, Shape{d.channels});
  }
  float* const mean = results[0].data<float>();
  float* const variance = results[1].data<float>();
  if (d.outer == 0) {
    for (float* result : {mean, variance})
      std::fill(result, result + d.channels, std::numeric_limits<float>::quiet_NaN());
  } else if (d.channels > 0) {
    batch_moments(c, d, x.dtype(), x.raw_data(), mean, variance);
  }
  for (int i = 0; i < 2; ++i) {
    if (c.output_dtype(i) != DType::kFloat)
      from_floats(results[i].data<float>(), c.output(i).data<BFloat16>(), d.channels);
  }
}

constexpr DTypeSet kTypes{DType::kFloat, DType::kBFloat16};
const KernelRegistration kMoments{{.op = "_Moments",
                                   .name = "one pass",
                                   .types = {{"T", kTypes}, {"Tout", kTypes}},
                                   .run = moments}};

}  // namespace

void batch_moments(KernelContext& c, const Channels& d, DType dtype, const void* x, float* mean,
                   float* variance) {
  with_type<Half, BFloat16, float>(
      dtype, [&]<class T>() { moments_of(c, d, static_cast<const T*>(x), mean, variance); });
}

}  // namespace tandem::cpu
