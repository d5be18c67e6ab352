#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/graph/kernel_context.h"
#include "tandem/kernels/cpu/image/resample_lines.h"
#include "tandem/kernels/cpu/image/resize.h"

// How the rows of resized images are made of lines, for each method: all have
//   maker<T>(c, r)   makes rows of lines of T (RowMaker)
//   last_line(at)    the last line that row `at` is made of, no earlier than that of the row before
//   first_line(at)   the first, which is no earlier either
//   lines()          so many lines, up to the last, are all that a row is made of
//   cost(r)          ns for a row

namespace tandem::cpu {

template <Taps (*make_taps)(const Placement&, std::int64_t, std::int64_t), Mix mix>
struct Tapped {
  Taps y, x;
  NewWidth columns;

  Tapped(const Placement& place, const Resize& r)
      : y(make_taps(place, r.in_height, r.out_height)),
        x(make_taps(place, r.in_width, r.out_width)),
        columns(r, x, mix) {}
  Tapped(const Tapped&) = delete;
  Tapped& operator=(const Tapped&) = delete;

  template <class T>
  RowMaker<T> maker(const KernelContext& c, const Resize& r) const {
    return RowMaker<T>(c, r, y, columns);
  }
  std::int64_t last_line(std::int64_t at) const {
    return y.index[static_cast<std::size_t>((at + 1) * y.count - 1)];
  }
  std::int64_t first_line(std::int64_t at) const {
    return y.index[static_cast<std::size_t>(at * y.count)];
  }
  std::int64_t lines() const { return y.count; }
  double cost(const Resize& r) const {
    return 0.5 * static_cast<double>(r.out_width * r.channels * (x.count + y.count));
  }
};
using Bilinear = Tapped<bilinear_taps, Mix::kLerp>;
using Bicubic = Tapped<cubic_taps, Mix::kWeights>;
using Area = Tapped<area_taps, Mix::kWeights>;

struct Nearest {
  std::vector<std::int64_t> y, x;

  Nearest(const Placement& place, const Resize& r)
      : y(nearest_pixels(place, r.in_height, r.out_height)),
        x(nearest_pixels(place, r.in_width, r.out_width)) {}

  template <class T>
  struct Maker {
    const Nearest& nearest;
    std::int64_t channels;

    template <class Line>
    void make(std::int64_t first, std::int64_t at, const Line& line, float* to) const {
      const T* from = line(first + nearest.last_line(at));
      for (const std::int64_t column : nearest.x) {
        const T* pixel = from + column * channels;
        for (std::int64_t k = 0; k < channels; ++k) *to++ = static_cast<float>(pixel[k]);
      }
    }
  };
  template <class T>
  Maker<T> maker(const KernelContext&, const Resize& r) const {
    return {*this, r.channels};
  }
  std::int64_t last_line(std::int64_t at) const { return y[static_cast<std::size_t>(at)]; }
  std::int64_t first_line(std::int64_t at) const { return last_line(at); }
  std::int64_t lines() const { return 1; }
  double cost(const Resize& r) const { return 0.5 * static_cast<double>(r.out_width * r.channels); }
};

/// Calls `f.template operator()<Method>()` with that of the attribute `method`.
template <class F>
void with_method(const KernelContext& c, F f) {
  const auto& method = c.attr<std::string>("method");
  if (method == "bilinear") return f.template operator()<Bilinear>();
  if (method == "bicubic") return f.template operator()<Bicubic>();
  if (method == "area") return f.template operator()<Area>();
  f.template operator()<Nearest>();
}

}  // namespace tandem::cpu
