#include "tandem/kernels/cpu/pool/pool_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/pool/pool_rows.cpp"
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

void MaxPoolGradRows(const PoolGeometry& g, const float* image, const float* gradient, float* dx,
                     Span rows, bool disjoint) {
  const std::int64_t line = g.input_row();
  const std::int64_t step = g.channels;
  // In large windows only the elements with a share are visited, one by one.
  const bool few = disjoint || g.height.filter * g.width.filter <= 12;
  for_each_vector(g, rows, [=](auto d, const Window& window, std::int64_t from) HWY_ATTR {
    const hn::Rebind<std::int32_t, decltype(d)> di;
    // The place of the largest element, counted from the window's first.
    auto largest = hn::LoadU(d, image + window.at);
    auto place = hn::Zero(di);
    for (std::int64_t y = 0; y < window.height; ++y) {
      std::int64_t k = y * line;
      for (std::int64_t x = 0; x < window.width; ++x, k += step) {
        const auto v = hn::LoadU(d, image + window.at + k);
        // The first of equal values counts; nothing is larger than NaN, and NaN than nothing.
        const auto better = hn::Gt(v, largest);
        largest = hn::IfThenElse(better, v, largest);
        place = hn::IfThenElse(hn::RebindMask(di, better),
                               hn::Set(di, static_cast<std::int32_t>(k)), place);
      }
    }
    if (!few) {
      HWY_ALIGN std::int32_t places[hn::MaxLanes(di)];
      hn::Store(place, di, places);
      for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
        dx[window.at + places[i] + static_cast<std::int64_t>(i)] +=
            gradient[from + static_cast<std::int64_t>(i)];
      }
      return;
    }
    const auto upstream = hn::LoadU(d, gradient + from);
    for (std::int64_t y = 0; y < window.height; ++y) {
      std::int64_t k = y * line;
      for (std::int64_t x = 0; x < window.width; ++x, k += step) {
        float* const to = dx + window.at + k;
        const auto here = hn::Eq(place, hn::Set(di, static_cast<std::int32_t>(k)));
        const auto share = hn::IfThenElseZero(hn::RebindMask(d, here), upstream);
        hn::StoreU(disjoint ? share : hn::Add(hn::LoadU(d, to), share), d, to);
      }
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(MaxPoolGradRows);

void max_pool_grad_rows(const PoolGeometry& g, const float* image, const float* gradient, float* dx,
                        Span rows, bool disjoint) {
  HWY_DYNAMIC_DISPATCH(MaxPoolGradRows)(g, image, gradient, dx, rows, disjoint);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
