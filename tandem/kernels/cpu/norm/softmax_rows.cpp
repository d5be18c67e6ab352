#include "tandem/kernels/cpu/norm/softmax_rows.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/norm/softmax_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"
#include "tandem/kernels/cpu/elementwise/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(D())); }

// The lanes of a row's end that hold elements.
HWY_INLINE hn::Mask<D> First(std::int64_t n) {
  return hn::FirstN(D(), static_cast<std::size_t>(n));
}

HWY_INLINE float Largest(const float* x, std::int64_t n) {
  const D d;
  const std::int64_t step = lanes();
  const V least = hn::Set(d, -std::numeric_limits<float>::infinity());
  V largest = least;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) largest = hn::Max(largest, hn::LoadU(d, x + i));
  if (i < n) {
    largest = hn::Max(largest, hn::IfThenElse(First(n - i), LoadTail(d, x + i, n - i), least));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// The sum of exp(x - largest), which goes to y if `store`.
template <bool store>
HWY_INLINE float SumExp(const float* x, float* y, std::int64_t n, float largest) {
  const D d;
  const std::int64_t step = lanes();
  const V shift = hn::Set(d, largest);
  V sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const V e = Exp(d, hn::Sub(hn::LoadU(d, x + i), shift));
    if (store) hn::StoreU(e, d, y + i);
    sum = hn::Add(sum, e);
  }
  if (i < n) {
    const V e = Exp(d, hn::Sub(LoadTail(d, x + i, n - i), shift));
    if (store) StoreTail(e, d, y + i, n - i);
    sum = hn::Add(sum, hn::IfThenElseZero(First(n - i), e));
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// y = f(x)
template <class F>
HWY_INLINE void Map(const float* x, float* y, std::int64_t n, F f) {
  const D d;
  const std::int64_t step = lanes();
  std::int64_t i = 0;
  for (; i + step <= n; i += step) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  if (i < n) StoreTail(f(LoadTail(d, x + i, n - i)), d, y + i, n - i);
}

// The largest of y = x * scale.
HWY_INLINE float LargestScaled(const float* x, float* y, std::int64_t n, float scale) {
  const D d;
  const std::int64_t step = lanes();
  const V least = hn::Set(d, -std::numeric_limits<float>::infinity()), factor = hn::Set(d, scale);
  V largest = least;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const V v = hn::Mul(hn::LoadU(d, x + i), factor);
    hn::StoreU(v, d, y + i);
    largest = hn::Max(largest, v);
  }
  if (i < n) {
    const V v = hn::Mul(LoadTail(d, x + i, n - i), factor);
    StoreTail(v, d, y + i, n - i);
    largest = hn::Max(largest, hn::IfThenElse(First(n - i), v, least));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

HWY_INLINE SoftmaxParts ExpAndDivide(const float* x, float* y, std::int64_t n, float largest) {
  const float sum = SumExp<true>(x, y, n, largest);
  const V factor = hn::Set(D(), 1 / sum);
  Map(y, y, n, [factor](V v) HWY_ATTR { return hn::Mul(v, factor); });
  return {largest, sum};
}

HWY_INLINE SoftmaxParts Softmax(const float* x, float* y, std::int64_t n) {
  return ExpAndDivide(x, y, n, Largest(x, n));
}

void ScaledSoftmaxRows(float* x, std::int64_t rows, std::int64_t n, float scale) {
  for (std::int64_t i = 0; i < rows; ++i, x += n)
    ExpAndDivide(x, x, n, LargestScaled(x, x, n, scale));
}

void SoftmaxRows(const float* x, float* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t i = 0; i < rows; ++i) Softmax(x + i * n, y + i * n, n);
}

void LogSoftmaxRows(const float* x, float* y, std::int64_t rows, std::int64_t n) {
  for (std::int64_t i = 0; i < rows; ++i, x += n, y += n) {
    const float largest = Largest(x, n);
    const V shift = hn::Set(D(), largest);
    const V log_sum = hn::Set(D(), std::log(SumExp<false>(x, y, n, largest)));
    Map(x, y, n, [=](V v) HWY_ATTR { return hn::Sub(hn::Sub(v, shift), log_sum); });
  }
}

SoftmaxParts SoftmaxRow(const float* x, float* y, std::int64_t n) { return Softmax(x, y, n); }

void KeepOfRow(const bool* keep, float* x, std::int64_t n, float other) {
  const D d;
  const hn::Rebind<std::uint8_t, D> d8;
  const hn::RebindToSigned<D> di;
  const std::int64_t step = lanes();
  const V others = hn::Set(d, other);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const auto bytes = hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(keep) + i);
    const auto left_out = hn::RebindMask(d, hn::Eq(hn::PromoteTo(di, bytes), hn::Zero(di)));
    hn::StoreU(hn::IfThenElse(left_out, others, hn::LoadU(d, x + i)), d, x + i);
  }
  for (; i < n; ++i) x[i] = keep[i] ? x[i] : other;
}

float CrossEntropyRow(const float* x, const float* labels, float* y, std::int64_t n, float largest,
                      float log_sum) {
  const D d;
  const std::int64_t step = lanes();
  const V shift = hn::Set(d, largest);
  const V log_sums = hn::Set(d, log_sum);
  V total = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    const V label = hn::LoadU(d, labels + i);
    const V loss = hn::Sub(log_sums, hn::Sub(hn::LoadU(d, x + i), shift));
    total = hn::MulAdd(label, loss, total);
    hn::StoreU(hn::Sub(hn::LoadU(d, y + i), label), d, y + i);
  }
  if (i < n) {
    const V label = LoadTail(d, labels + i, n - i);
    const V loss = hn::Sub(log_sums, hn::Sub(LoadTail(d, x + i, n - i), shift));
    total = hn::Add(total, hn::IfThenElseZero(First(n - i), hn::Mul(label, loss)));
    StoreTail(hn::Sub(LoadTail(d, y + i, n - i), label), d, y + i, n - i);
  }
  return hn::GetLane(hn::SumOfLanes(d, total));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tandem::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(ScaledSoftmaxRows);
HWY_EXPORT(LogSoftmaxRows);
HWY_EXPORT(SoftmaxRow);
HWY_EXPORT(KeepOfRow);
HWY_EXPORT(CrossEntropyRow);

void softmax_rows(const float* x, float* y, std::int64_t rows, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRows)(x, y, rows, n);
}
void scaled_softmax_rows(float* x, std::int64_t rows, std::int64_t n, float scale) {
  HWY_DYNAMIC_DISPATCH(ScaledSoftmaxRows)(x, rows, n, scale);
}
void log_softmax_rows(const float* x, float* y, std::int64_t rows, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(LogSoftmaxRows)(x, y, rows, n);
}
SoftmaxParts softmax_row(const float* x, float* y, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxRow)(x, y, n);
}
void keep_of_row(const bool* keep, float* x, std::int64_t n, float other) {
  HWY_DYNAMIC_DISPATCH(KeepOfRow)(keep, x, n, other);
}
float cross_entropy_row(const float* x, const float* labels, float* y, std::int64_t n,
                        float largest, float log_sum) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropyRow)(x, labels, y, n, largest, log_sum);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
