#include "tandem/kernels/cpu/pool_rows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/pool_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using D1 = hn::CappedTag<float, 1>;

// Where a window lies in an image: the offset of its first element and its sizes.
struct Window {
  std::int64_t at;
  std::int64_t height;
  std::int64_t width;
};

// Calls f(d, window, index of the result) for all windows of the rows and all vectors of channels.
template <class F>
HWY_INLINE void for_each_vector(const PoolGeometry& g, Span rows, F f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  std::int64_t out = rows.begin * g.output_row();
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const Span h = PoolGeometry::covered(g.height, row);
    for (std::int64_t column = 0; column < g.width.output; ++column, out += g.channels) {
      const Span w = PoolGeometry::covered(g.width, column);
      const Window window{(h.begin * g.width.input + w.begin) * g.channels, h.end - h.begin,
                          w.end - w.begin};
      std::int64_t c = 0;
      for (; c + lanes <= g.channels; c += lanes) {
        f(D(), Window{window.at + c, window.height, window.width}, out + c);
      }
      for (; c < g.channels; ++c) {
        f(D1(), Window{window.at + c, window.height, window.width}, out + c);
      }
    }
  }
}

// NaN is larger than anything, and the first of equal values counts.
template <class V>
HWY_INLINE auto is_larger(V a, V b) {
  return hn::Or(hn::Gt(a, b), hn::And(hn::IsNaN(a), hn::Not(hn::IsNaN(b))));
}

void MaxPoolRows(const PoolGeometry& g, const float* image, float* out, Span rows) {
  const std::int64_t line = g.input_row();
  const std::int64_t step = g.channels;
  for_each_vector(g, rows, [=](auto d, const Window& window, std::int64_t to) HWY_ATTR {
    auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
    std::int64_t at = window.at;
    for (std::int64_t y = 0; y < window.height; ++y, at += line) {
      for (std::int64_t x = 0; x < window.width; ++x) {
        const auto v = hn::LoadU(d, image + at + x * step);
        largest = hn::IfThenElse(hn::Or(hn::Gt(v, largest), hn::IsNaN(v)), v, largest);
      }
    }
    hn::StoreU(largest, d, out + to);
  });
}

void MaxPoolGradRows(const PoolGeometry& g, const float* image, const float* gradient, float* dx,
                     Span rows, bool disjoint) {
  const std::int64_t line = g.input_row();
  const std::int64_t step = g.channels;
  for_each_vector(g, rows, [=](auto d, const Window& window, std::int64_t from) HWY_ATTR {
    // The place of the largest element, counted in the window: a float, which windows are small
    // enough for.
    auto largest = hn::LoadU(d, image + window.at);
    auto place = hn::Zero(d);
    float k = 0;
    std::int64_t at = window.at;
    for (std::int64_t y = 0; y < window.height; ++y, at += line) {
      for (std::int64_t x = 0; x < window.width; ++x, k += 1) {
        const auto v = hn::LoadU(d, image + at + x * step);
        const auto better = is_larger(v, largest);
        largest = hn::IfThenElse(better, v, largest);
        place = hn::IfThenElse(better, hn::Set(d, k), place);
      }
    }
    const auto upstream = hn::LoadU(d, gradient + from);
    k = 0;
    at = window.at;
    for (std::int64_t y = 0; y < window.height; ++y, at += line) {
      for (std::int64_t x = 0; x < window.width; ++x, k += 1) {
        float* const to = dx + at + x * step;
        const auto share = hn::IfThenElseZero(hn::Eq(place, hn::Set(d, k)), upstream);
        hn::StoreU(disjoint ? share : hn::Add(hn::LoadU(d, to), share), d, to);
      }
    }
  });
}

void AvgPoolRows(const PoolGeometry& g, const float* image, float* out, Span rows) {
  const std::int64_t line = g.input_row();
  const std::int64_t step = g.channels;
  for_each_vector(g, rows, [=](auto d, const Window& window, std::int64_t to) HWY_ATTR {
    auto sum = hn::Zero(d);
    std::int64_t at = window.at;
    for (std::int64_t y = 0; y < window.height; ++y, at += line) {
      for (std::int64_t x = 0; x < window.width; ++x) {
        sum = hn::Add(sum, hn::LoadU(d, image + at + x * step));
      }
    }
    const auto count = hn::Set(d, static_cast<float>(window.height * window.width));
    hn::StoreU(hn::Div(sum, count), d, out + to);
  });
}

// The shares of one input element's channels.
template <class Tag>
HWY_INLINE void GatherShares(Tag d, const PoolGeometry& g, const float* gradient, float* to, Span h,
                             Span w) {
  auto sum = hn::Zero(d);
  for (std::int64_t row = h.begin; row < h.end; ++row) {
    const Span tall = PoolGeometry::covered(g.height, row);
    for (std::int64_t column = w.begin; column < w.end; ++column) {
      const Span wide = PoolGeometry::covered(g.width, column);
      const auto share =
          hn::Set(d, 1 / static_cast<float>((tall.end - tall.begin) * (wide.end - wide.begin)));
      const auto v = hn::LoadU(d, gradient + (row * g.width.output + column) * g.channels);
      sum = hn::MulAdd(v, share, sum);
    }
  }
  hn::StoreU(sum, d, to);
}

void AvgPoolGradRows(const PoolGeometry& g, const float* gradient, float* dx, Span rows) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  float* to = dx + rows.begin * g.input_row();
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    const Span h = PoolGeometry::covering(g.height, y);
    for (std::int64_t x = 0; x < g.width.input; ++x, to += g.channels) {
      const Span w = PoolGeometry::covering(g.width, x);
      std::int64_t c = 0;
      for (; c + lanes <= g.channels; c += lanes) GatherShares(D(), g, gradient + c, to + c, h, w);
      for (; c < g.channels; ++c) GatherShares(D1(), g, gradient + c, to + c, h, w);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(MaxPoolRows);
HWY_EXPORT(MaxPoolGradRows);
HWY_EXPORT(AvgPoolRows);
HWY_EXPORT(AvgPoolGradRows);

void max_pool_rows(const PoolGeometry& g, const float* image, float* out, Span rows) {
  HWY_DYNAMIC_DISPATCH(MaxPoolRows)(g, image, out, rows);
}
void max_pool_grad_rows(const PoolGeometry& g, const float* image, const float* gradient, float* dx,
                        Span rows, bool disjoint) {
  HWY_DYNAMIC_DISPATCH(MaxPoolGradRows)(g, image, gradient, dx, rows, disjoint);
}
void avg_pool_rows(const PoolGeometry& g, const float* image, float* out, Span rows) {
  HWY_DYNAMIC_DISPATCH(AvgPoolRows)(g, image, out, rows);
}
void avg_pool_grad_rows(const PoolGeometry& g, const float* gradient, float* dx, Span rows) {
  HWY_DYNAMIC_DISPATCH(AvgPoolGradRows)(g, gradient, dx, rows);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
