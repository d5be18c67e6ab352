#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "tandem/core/shape.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// A value seen as [outer, channels, inner]: inner is 1 if the channels come last (NHWC).
struct Channels {
  std::int64_t outer = 0;
  std::int64_t channels = 0;
  std::int64_t inner = 0;

  /// `data_format` begins with "NC", or the channels are the last axis. Rank 2 or more.
  static Channels of(const Shape& shape, std::string_view data_format) {
    const int axis = data_format.substr(0, 2) == "NC" ? 1 : shape.rank() - 1;
    // A single channel may stand anywhere; in front its values lie side by side.
    if (shape[axis] == 1) return {shape[0], 1, shape.product(1, shape.rank())};
    return {shape.product(0, axis), shape[axis], shape.product(axis + 1, shape.rank())};
  }
  /// Elements of one step of the outer axis.
  std::int64_t row() const { return channels * inner; }
};

/// How sums over the outer axis are split, which depends on the shape alone: so they have the same
/// bits for every number of threads.
struct Pieces {
  std::int64_t rows = 1;                     ///< of the outer axis, in all pieces but the last
  std::int64_t count = 1;                    ///< at least one
  static constexpr double kMergeCost = 0.5;  ///< ns for what a piece has for one sum

  static Pieces of(const Channels& d) {
    constexpr std::int64_t kMax = 128;
    constexpr std::int64_t kSmallest = 16384;  // elements
    constexpr std::int64_t kFewest = 64;       // elements for each sum, which takes memory too
    const std::int64_t row = std::max<std::int64_t>(1, d.row());
    const std::int64_t inner = std::max<std::int64_t>(1, d.inner);
    Pieces p;
    p.rows =
        std::max({(d.outer + kMax - 1) / kMax, kSmallest / row, (kFewest + inner - 1) / inner});
    p.count = std::max<std::int64_t>(1, (d.outer + p.rows - 1) / p.rows);
    return p;
  }

  /// Sums what `add(begin, end, sums)` adds to `width` sums for rows [begin, end), into `total`.
  template <class Sum, class Add>
  void sum(KernelContext& c, const Channels& d, std::int64_t width, Sum* total, Add add) const {
    std::fill(total, total + width, Sum());
    if (count == 1) {
      if (d.outer > 0) add(std::int64_t{0}, d.outer, total);
      return;
    }
    const Array partial = c.allocate_temp(dtype_of<Sum>, Shape{count, width});
    Sum* sums = partial.data<Sum>();
    c.intra_op().for_each_piece(count, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        std::fill(sums + p * width, sums + (p + 1) * width, Sum());
        add(p * rows, std::min(d.outer, (p + 1) * rows), sums + p * width);
      }
    });
    c.intra_op().parallel_for(width, kMergeCost * static_cast<double>(count),
                              [&](std::int64_t begin, std::int64_t end) {
                                for (std::int64_t p = 0; p < count; ++p) {
                                  const Sum* const part = sums + p * width;
                                  for (std::int64_t i = begin; i < end; ++i)
                                    total[i] = static_cast<Sum>(total[i] + part[i]);
                                }
                              });
  }
};

}  // namespace tandem::cpu
