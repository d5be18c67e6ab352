// Rows of images resized to another width, and rows made of rows, in vectors.

#include <algorithm>
#include <limits>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/image/resample_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/image/resample_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
void PixelByPixel(const NewWidth& w, std::int64_t first, const T* from, float* to) {
  const std::int64_t n = w.channels;
  for (std::int64_t i = first; i < w.width; ++i) {
    const std::int32_t* offset = w.offset.data() + i * w.count;
    const float* weight = w.weight + i * w.count;
    for (std::int64_t k = 0; k < n; ++k) {
      const auto a = static_cast<float>(from[offset[0] + k]);
      if (w.mix == Mix::kLerp) {
        to[i * n + k] = a + (static_cast<float>(from[offset[1] + k]) - a) * weight[1];
        continue;
      }
      float sum = a * weight[0];
      for (std::int64_t t = 1; t < w.count; ++t) {
        sum += static_cast<float>(from[offset[t] + k]) * weight[t];
      }
      to[i * n + k] = sum;
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
constexpr bool kWindows = false;

template <class T>
void ToWidth(const NewWidth& w, const T* from, float* to) {
  PixelByPixel(w, 0, from, to);
}
#else
// A pixel of three or four channels with what follows it.
using Pixel = hn::FixedTag<float, 4>;
using PixelV = hn::Vec<Pixel>;

HWY_INLINE PixelV Load(const float* from) { return hn::LoadU(Pixel(), from); }
HWY_INLINE PixelV Load(const std::uint8_t* from) {
  const hn::Rebind<std::uint8_t, Pixel> bytes;
  const hn::Rebind<std::int32_t, Pixel> ints;
  return hn::ConvertTo(Pixel(), hn::PromoteTo(ints, hn::LoadU(bytes, from)));
}

#if HWY_TARGET <= HWY_AVX3
constexpr bool kWindows = true;
using Block = hn::FixedTag<float, RowWindows::kLanes>;
using BlockV = hn::Vec<Block>;

HWY_INLINE BlockV LoadBlock(const float* from) { return hn::LoadU(Block(), from); }
HWY_INLINE BlockV LoadBlock(const std::uint8_t* from) {
  const hn::Rebind<std::uint8_t, Block> bytes;
  const hn::Rebind<std::int32_t, Block> ints;
  return hn::ConvertTo(Block(), hn::PromoteTo(ints, hn::LoadU(bytes, from)));
}

// What each lane reads of the 48 elements from `from` on.
template <class T>
HWY_INLINE BlockV Pick(const T* from, const std::int32_t* lane) {
  const Block d;
  const hn::RebindToSigned<Block> ints;
  constexpr std::int32_t kLanes = RowWindows::kLanes;
  const auto at = hn::LoadU(ints, lane);
  const auto within = hn::IndicesFromVec(d, hn::And(at, hn::Set(ints, kLanes - 1)));
  const auto past_first = hn::RebindMask(d, hn::Gt(at, hn::Set(ints, kLanes - 1)));
  const auto past_second = hn::RebindMask(d, hn::Gt(at, hn::Set(ints, 2 * kLanes - 1)));
  const BlockV first = hn::TableLookupLanes(LoadBlock(from), within);
  const BlockV second = hn::TableLookupLanes(LoadBlock(from + kLanes), within);
  const BlockV third = hn::TableLookupLanes(LoadBlock(from + 2 * kLanes), within);
  return hn::IfThenElse(past_second, third, hn::IfThenElse(past_first, second, first));
}

template <class T>
void InWindows(const NewWidth& w, const T* from, float* to) {
  const Block d;
  constexpr std::int64_t kLanes = RowWindows::kLanes;
  const std::int32_t* begin = w.windows.begin.data();
  const std::int32_t* lane = w.windows.lane.data();
  const float* weight = w.windows.weight.data();
  const std::int64_t taps = w.count;
  for (std::int64_t i = 0; i < w.windows.size; i += kLanes) {
    const BlockV first = Pick(from + begin[0], lane);
    BlockV sum;
    if (w.mix == Mix::kLerp) {
      const BlockV step = hn::Sub(Pick(from + begin[1], lane + kLanes), first);
      sum = hn::Add(first, hn::Mul(step, hn::LoadU(d, weight + kLanes)));
    } else {
      sum = hn::Mul(first, hn::LoadU(d, weight));
      for (std::int64_t t = 1; t < taps; ++t) {
        const BlockV more = Pick(from + begin[t], lane + t * kLanes);
        sum = hn::Add(sum, hn::Mul(more, hn::LoadU(d, weight + t * kLanes)));
      }
    }
    hn::StoreU(sum, d, to + i);
    begin += taps;
    lane += taps * kLanes;
    weight += taps * kLanes;
  }
}
#else
constexpr bool kWindows = false;
template <class T>
void InWindows(const NewWidth&, const T*, float*) {}
#endif

template <class T>
void ToWidth(const NewWidth& w, const T* from, float* to) {
  InWindows(w, from, to);
  const std::int64_t made = w.windows.size / w.channels;  // pixels
  const Pixel d;
  const std::int32_t* offset = w.offset.data() + made * w.count;
  const float* weight = w.weight + made * w.count;
  float* at = to + made * w.channels;
  if (w.mix == Mix::kLerp) {
    for (std::int64_t i = made; i < w.whole; ++i, offset += 2, weight += 2, at += w.channels) {
      const PixelV a = Load(from + offset[0]), b = Load(from + offset[1]);
      hn::StoreU(hn::Add(a, hn::Mul(hn::Sub(b, a), hn::Set(d, weight[1]))), d, at);
    }
  } else {
    for (std::int64_t i = made; i < w.whole; ++i, at += w.channels) {
      PixelV sum = hn::Mul(Load(from + offset[0]), hn::Set(d, weight[0]));
      for (std::int64_t t = 1; t < w.count; ++t) {
        sum = hn::Add(sum, hn::Mul(Load(from + offset[t]), hn::Set(d, weight[t])));
      }
      hn::StoreU(sum, d, at);
      offset += w.count;
      weight += w.count;
    }
  }
  PixelByPixel(w, std::max(made, w.whole), from, to);
}
#endif

void BytesToWidth(const NewWidth& w, const std::uint8_t* from, float* to) { ToWidth(w, from, to); }
void FloatsToWidth(const NewWidth& w, const float* from, float* to) { ToWidth(w, from, to); }

void LerpBytes(const std::uint8_t* a, const std::uint8_t* b, float weight, std::int64_t n,
               float* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> ints;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto share = hn::Set(d, weight);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::PromoteTo(ints, hn::LoadU(bytes, a + i));
    const auto step = hn::Sub(hn::PromoteTo(ints, hn::LoadU(bytes, b + i)), x);
    const auto moved = hn::Mul(hn::ConvertTo(d, step), share);
    hn::StoreU(hn::Add(hn::ConvertTo(d, x), moved), d, to + i);
  }
  for (; i < n; ++i) {
    const auto x = static_cast<float>(a[i]);
    to[i] = x + (static_cast<float>(b[i]) - x) * weight;
  }
}

void Lerp(const float* a, const float* b, float weight, std::int64_t n, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto share = hn::Set(d, weight);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, a + i), y = hn::LoadU(d, b + i);
    hn::StoreU(hn::Add(x, hn::Mul(hn::Sub(y, x), share)), d, to + i);
  }
  for (; i < n; ++i) to[i] = a[i] + (b[i] - a[i]) * weight;
}

void AddWeighted(float* sum, const float* row, float weight, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto share = hn::Set(d, weight);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto product = hn::Mul(hn::LoadU(d, row + i), share);
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), product), d, sum + i);
  }
  for (; i < n; ++i) sum[i] += row[i] * weight;
}

const RowSteps kSteps{BytesToWidth, FloatsToWidth, LerpBytes, Lerp, AddWeighted, kWindows};

}  // namespace

const RowSteps* VectorRowSteps() { return &kSteps; }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

namespace {
HWY_EXPORT(VectorRowSteps);
}  // namespace

const RowSteps& row_steps() {
  static const RowSteps* const kSteps = HWY_DYNAMIC_DISPATCH(VectorRowSteps)();
  return *kSteps;
}

NewWidth::NewWidth(const Resize& r, const Taps& columns, Mix how)
    : mix(how),
      width(r.out_width),
      channels(r.channels),
      count(columns.count),
      weight(columns.weight.data()),
      whole(0) {
  const std::int64_t in_row = r.in_width * r.channels;
  if (in_row > std::numeric_limits<std::int32_t>::max()) {
    throw InvalidArgumentError(cat("Rows of ", in_row, " elements are too long to be resized."));
  }
  offset.reserve(columns.index.size());
  for (const std::int64_t index : columns.index) {
    offset.push_back(static_cast<std::int32_t>(index * channels));
  }
  if (row_steps().windows) {
    const auto elements = static_cast<std::size_t>(width * channels * count);
    windows.begin.reserve(elements / RowWindows::kLanes);
    windows.lane.reserve(elements);
    windows.weight.reserve(elements);
    while (add_window(in_row)) continue;
  }
  if (channels != 3 && channels != 4) return;
  const auto fits = [&](std::int64_t pixel) {
    if (pixel * channels + 4 > width * channels) return false;
    const auto first = offset.begin() + pixel * count;
    return std::all_of(first, first + count, [&](std::int32_t at) { return at + 4 <= in_row; });
  };
  while (whole < width && fits(whole)) ++whole;
}

bool NewWidth::add_window(std::int64_t in_row) {
  constexpr std::int64_t kLanes = RowWindows::kLanes, kReach = RowWindows::kReach;
  if (windows.size + kLanes > width * channels || in_row < kReach) return false;
  std::int32_t at[kLanes];
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t i = 0; i < kLanes; ++i) {
      const std::int64_t element = windows.size + i, tap = element / channels * count + t;
      at[i] = offset[static_cast<std::size_t>(tap)] + static_cast<std::int32_t>(element % channels);
      windows.weight.push_back(weight[tap]);
    }
    const auto [least, most] = std::minmax_element(at, at + kLanes);
    const auto begin = std::min(*least, static_cast<std::int32_t>(in_row - kReach));
    if (*most - begin >= kReach) return false;
    windows.begin.push_back(begin);
    for (const std::int32_t i : at) windows.lane.push_back(i - begin);
  }
  windows.size += kLanes;
  return true;
}

}  // namespace tandem::cpu
#endif
