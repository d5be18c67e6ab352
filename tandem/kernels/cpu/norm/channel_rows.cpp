#include "tandem/kernels/cpu/norm/channel_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/norm/channel_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using D1 = hn::CappedTag<float, 1>;

std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

// ---- Elementwise: f(d, i, channel) stores element i ----

// Calls f for all elements of a block, in vectors and then, where a row's end does not fill one,
// one by one.
template <class F>
HWY_INLINE void for_rows(std::int64_t rows, std::int64_t channels, F f) {
  const std::int64_t n = lanes();
  for (std::int64_t row = 0, at = 0; row < rows; ++row, at += channels) {
    std::int64_t c = 0;
    for (; c + n <= channels; c += n) f(D(), at + c, c);
    for (; c < channels; ++c) f(D1(), at + c, c);
  }
}

template <class F>
HWY_INLINE void for_run(std::int64_t count, F f) {
  const std::int64_t n = lanes();
  std::int64_t i = 0;
  for (; i + n <= count; i += n) f(D(), i);
  for (; i < count; ++i) f(D1(), i);
}

// ---- Sums: K of them, f(d, i, channel, sums) adds element i ----

// One column of vectors at a time, two rows side by side so that sums need not wait for each other.
template <int K, class Tag, class F>
HWY_INLINE void sum_column(Tag d, std::int64_t rows, std::int64_t channels, std::int64_t c,
                           float* const* to, F f) {
  using V = hn::Vec<Tag>;
  V even[K];
  V odd[K];
  for (int k = 0; k < K; ++k) even[k] = odd[k] = hn::Zero(d);
  std::int64_t row = 0;
  std::int64_t at = c;
  for (; row + 2 <= rows; row += 2, at += 2 * channels) {
    f(d, at, c, even);
    f(d, at + channels, c, odd);
  }
  if (row < rows) f(d, at, c, even);
  for (int k = 0; k < K; ++k) {
    hn::StoreU(hn::Add(hn::LoadU(d, to[k] + c), hn::Add(even[k], odd[k])), d, to[k] + c);
  }
}

template <int K, class F>
HWY_INLINE void sum_by_rows(std::int64_t rows, std::int64_t channels, float* const* to, F f) {
  const std::int64_t n = lanes();
  std::int64_t c = 0;
  for (; c + n <= channels; c += n) sum_column<K>(D(), rows, channels, c, to, f);
  for (; c < channels; ++c) sum_column<K>(D1(), rows, channels, c, to, f);
}

template <int K, class F>
HWY_INLINE void sum_of_run(std::int64_t count, float* const* to, F f) {
  using V = hn::Vec<D>;
  const D d;
  const std::int64_t n = lanes();
  V even[K];
  V odd[K];
  for (int k = 0; k < K; ++k) even[k] = odd[k] = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 2 * n <= count; i += 2 * n) {
    f(d, i, even);
    f(d, i + n, odd);
  }
  if (i + n <= count) {
    f(d, i, even);
    i += n;
  }
  hn::Vec<D1> rest[K];
  for (int k = 0; k < K; ++k) rest[k] = hn::Zero(D1());
  for (; i < count; ++i) f(D1(), i, rest);
  for (int k = 0; k < K; ++k) {
    *to[k] += hn::GetLane(hn::SumOfLanes(d, hn::Add(even[k], odd[k]))) + hn::GetLane(rest[k]);
  }
}

// ---- The functions of the header ----

void AddToRows(const float* x, const float* bias, float* y, std::int64_t rows,
               std::int64_t channels) {
  for_rows(rows, channels, [=](auto d, std::int64_t i, std::int64_t c) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, bias + c)), d, y + i);
  });
}

void AddToRun(const float* x, float bias, float* y, std::int64_t count) {
  for_run(count, [=](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::Set(d, bias)), d, y + i);
  });
}

void SumRows(const float* x, float* sums, std::int64_t rows, std::int64_t channels) {
  float* const to[] = {sums};
  sum_by_rows<1>(rows, channels, to,
                 [=](auto d, std::int64_t i, std::int64_t, hn::Vec<decltype(d)>* s)
                     HWY_ATTR { s[0] = hn::Add(s[0], hn::LoadU(d, x + i)); });
}

void SumRun(const float* x, float* sum, std::int64_t count) {
  float* const to[] = {sum};
  sum_of_run<1>(count, to, [=](auto d, std::int64_t i, hn::Vec<decltype(d)>* s) HWY_ATTR {
    s[0] = hn::Add(s[0], hn::LoadU(d, x + i));
  });
}

void DeviationRows(const float* x, const float* mean, float* sums, float* squares,
                   std::int64_t rows, std::int64_t channels) {
  float* const to[] = {sums, squares};
  sum_by_rows<2>(rows, channels, to,
                 [=](auto d, std::int64_t i, std::int64_t c, hn::Vec<decltype(d)>* s) HWY_ATTR {
                   const auto v = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, mean + c));
                   s[0] = hn::Add(s[0], v);
                   s[1] = hn::MulAdd(v, v, s[1]);
                 });
}

void DeviationRun(const float* x, float mean, float* sum, float* square, std::int64_t count) {
  float* const to[] = {sum, square};
  sum_of_run<2>(count, to, [=](auto d, std::int64_t i, hn::Vec<decltype(d)>* s) HWY_ATTR {
    const auto v = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    s[0] = hn::Add(s[0], v);
    s[1] = hn::MulAdd(v, v, s[1]);
  });
}

void GradientSumRows(const float* g, const float* x, const float* mean, float* sums,
                     float* products, std::int64_t rows, std::int64_t channels) {
  float* const to[] = {sums, products};
  sum_by_rows<2>(rows, channels, to,
                 [=](auto d, std::int64_t i, std::int64_t c, hn::Vec<decltype(d)>* s) HWY_ATTR {
                   const auto v = hn::LoadU(d, g + i);
                   s[0] = hn::Add(s[0], v);
                   s[1] = hn::MulAdd(v, hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, mean + c)), s[1]);
                 });
}

void GradientSumRun(const float* g, const float* x, float mean, float* sum, float* product,
                    std::int64_t count) {
  float* const to[] = {sum, product};
  sum_of_run<2>(count, to, [=](auto d, std::int64_t i, hn::Vec<decltype(d)>* s) HWY_ATTR {
    const auto v = hn::LoadU(d, g + i);
    s[0] = hn::Add(s[0], v);
    s[1] = hn::MulAdd(v, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), s[1]);
  });
}

void NormalizeRows(const float* x, const Normalization& n, float* y, std::int64_t rows,
                   std::int64_t channels) {
  for_rows(rows, channels, [=](auto d, std::int64_t i, std::int64_t c) HWY_ATTR {
    const auto centered = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, n.mean + c));
    hn::StoreU(hn::MulAdd(centered, hn::LoadU(d, n.factor + c), hn::LoadU(d, n.offset + c)), d,
               y + i);
  });
}

void NormalizeRun(const float* x, const Normalization& n, std::int64_t channel, float* y,
                  std::int64_t count) {
  const float mean = n.mean[channel];
  const float factor = n.factor[channel];
  const float offset = n.offset[channel];
  for_run(count, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto centered = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    hn::StoreU(hn::MulAdd(centered, hn::Set(d, factor), hn::Set(d, offset)), d, y + i);
  });
}

void GradientRows(const float* g, const float* x, const NormalizationGradient& n, float* dx,
                  std::int64_t rows, std::int64_t channels) {
  for_rows(rows, channels, [=](auto d, std::int64_t i, std::int64_t c) HWY_ATTR {
    const auto centered = hn::Sub(hn::LoadU(d, x + i), hn::LoadU(d, n.mean + c));
    const auto shifted = hn::Sub(hn::LoadU(d, g + i), hn::LoadU(d, n.shift + c));
    const auto inner = hn::NegMulAdd(centered, hn::LoadU(d, n.slope + c), shifted);
    hn::StoreU(hn::Mul(hn::LoadU(d, n.factor + c), inner), d, dx + i);
  });
}

void GradientRun(const float* g, const float* x, const NormalizationGradient& n,
                 std::int64_t channel, float* dx, std::int64_t count) {
  const float mean = n.mean[channel];
  const float factor = n.factor[channel];
  const float shift = n.shift[channel];
  const float slope = n.slope[channel];
  for_run(count, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto centered = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    const auto shifted = hn::Sub(hn::LoadU(d, g + i), hn::Set(d, shift));
    hn::StoreU(hn::Mul(hn::Set(d, factor), hn::NegMulAdd(centered, hn::Set(d, slope), shifted)), d,
               dx + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(AddToRows);
HWY_EXPORT(AddToRun);
HWY_EXPORT(SumRows);
HWY_EXPORT(SumRun);
HWY_EXPORT(DeviationRows);
HWY_EXPORT(DeviationRun);
HWY_EXPORT(GradientSumRows);
HWY_EXPORT(GradientSumRun);
HWY_EXPORT(NormalizeRows);
HWY_EXPORT(NormalizeRun);
HWY_EXPORT(GradientRows);
HWY_EXPORT(GradientRun);

void add_to_rows(const float* x, const float* bias, float* y, std::int64_t rows,
                 std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(AddToRows)(x, bias, y, rows, channels);
}
void add_to_run(const float* x, float bias, float* y, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(AddToRun)(x, bias, y, count);
}
void sum_rows(const float* x, float* sums, std::int64_t rows, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(SumRows)(x, sums, rows, channels);
}
void sum_run(const float* x, float* sum, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(SumRun)(x, sum, count);
}
void deviation_rows(const float* x, const float* mean, float* sums, float* squares,
                    std::int64_t rows, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(DeviationRows)(x, mean, sums, squares, rows, channels);
}
void deviation_run(const float* x, float mean, float* sum, float* square, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(DeviationRun)(x, mean, sum, square, count);
}
void gradient_sum_rows(const float* g, const float* x, const float* mean, float* sums,
                       float* products, std::int64_t rows, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(GradientSumRows)(g, x, mean, sums, products, rows, channels);
}
void gradient_sum_run(const float* g, const float* x, float mean, float* sum, float* product,
                      std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(GradientSumRun)(g, x, mean, sum, product, count);
}
void normalize_rows(const float* x, const Normalization& n, float* y, std::int64_t rows,
                    std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(NormalizeRows)(x, n, y, rows, channels);
}
void normalize_run(const float* x, const Normalization& n, std::int64_t channel, float* y,
                   std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(NormalizeRun)(x, n, channel, y, count);
}
void gradient_rows(const float* g, const float* x, const NormalizationGradient& n, float* dx,
                   std::int64_t rows, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(GradientRows)(g, x, n, dx, rows, channels);
}
void gradient_run(const float* g, const float* x, const NormalizationGradient& n,
                  std::int64_t channel, float* dx, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(GradientRun)(g, x, n, channel, dx, count);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
