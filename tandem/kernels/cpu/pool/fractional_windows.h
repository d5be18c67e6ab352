#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// Where the windows of an axis begin, and where the last one ends.
using Edges = std::vector<std::int64_t>;

/// The windows of fractional pooling in images [height, width, channels].
struct Windows {
  Edges rows, columns;
  std::int64_t height, width;  ///< of an image
  bool overlapping;            ///< the next one's first row and column too

  std::int64_t down() const { return static_cast<std::int64_t>(rows.size()) - 1; }
  std::int64_t across() const { return static_cast<std::int64_t>(columns.size()) - 1; }
  std::int64_t pixels() const { return height * width; }

  /// Calls `visit(place)` for each pixel of a window, with its number in the image.
  template <class Visit>
  void each(std::int64_t row, std::int64_t column, Visit visit) const {
    const std::int64_t y_end = end(rows, row, height), x_end = end(columns, column, width);
    for (std::int64_t y = at(rows, row); y < y_end; ++y) {
      for (std::int64_t x = at(columns, column); x < x_end; ++x) visit(y * width + x);
    }
  }
  std::int64_t count(std::int64_t row, std::int64_t column) const {
    return (end(rows, row, height) - at(rows, row)) *
           (end(columns, column, width) - at(columns, column));
  }

 private:
  static std::int64_t at(const Edges& edges, std::int64_t i) {
    return edges[static_cast<std::size_t>(i)];
  }
  std::int64_t end(const Edges& edges, std::int64_t i, std::int64_t size) const {
    return std::min(at(edges, i + 1) + (overlapping ? 1 : 0), size);
  }
};

/// The windows of an execution of FractionalMaxPool or FractionalAvgPool, as its attributes and
/// input ask for them. Throws InvalidArgumentError where they cannot be had.
Windows draw_windows(KernelContext& c);

}  // namespace tandem::cpu
