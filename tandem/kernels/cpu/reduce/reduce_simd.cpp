// Rows and columns of float and double.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/reduce/reduce_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/reduce/reduce_steps.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <Reduction kKind, class V>
HWY_INLINE V Combine(V a, V b) {
  if constexpr (kKind == Reduction::kProduct)
    return hn::Mul(a, b);
  else if constexpr (kKind == Reduction::kMax)
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  else if constexpr (kKind == Reduction::kMin)
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
  else
    return hn::Add(a, b);
}

// acc combined with what was loaded.
template <Reduction kKind, class V>
HWY_INLINE V Take(V acc, V x) {
  if constexpr (kKind == Reduction::kSquares)
    return hn::MulAdd(x, x, acc);
  else
    return Combine<kKind>(acc, x);
}

template <Reduction kKind, class F>
F Row(const F* x, std::int64_t n) {
  const hn::ScalableTag<F> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  F result = reduction_identity<kKind, F>();
  std::int64_t i = 0;
  if (n >= lanes) {
    const auto identity = hn::Set(d, result);
    auto a0 = identity, a1 = identity, a2 = identity, a3 = identity;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      a0 = Take<kKind>(a0, hn::LoadU(d, x + i));
      a1 = Take<kKind>(a1, hn::LoadU(d, x + i + lanes));
      a2 = Take<kKind>(a2, hn::LoadU(d, x + i + 2 * lanes));
      a3 = Take<kKind>(a3, hn::LoadU(d, x + i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) a0 = Take<kKind>(a0, hn::LoadU(d, x + i));
    a0 = Combine<kKind>(Combine<kKind>(a0, a1), Combine<kKind>(a2, a3));
    HWY_ALIGN F each[HWY_MAX_BYTES / sizeof(F)];
    hn::Store(a0, d, each);
    for (std::int64_t width = lanes / 2; width > 0; width /= 2) {
      for (std::int64_t k = 0; k < width; ++k) each[k] = combine<kKind>(each[k], each[k + width]);
    }
    result = each[0];
  }
  for (; i < n; ++i) result = combine<kKind>(result, contribution<kKind, F>(x[i]));
  return result;
}

// Eight rows at a time, so that accumulators are read and written once for eight loads.
template <Reduction kKind, class F>
void WideColumns(const F* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, F* acc) {
  const hn::ScalableTag<F> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; rows >= 8; rows -= 8, x += 8 * stride) {
    std::int64_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      const F* p = x + j;
      auto a = hn::LoadU(d, acc + j);
      a = Take<kKind>(a, hn::LoadU(d, p));
      auto b = hn::Set(d, reduction_identity<kKind, F>());
      b = Take<kKind>(b, hn::LoadU(d, p + stride));
      a = Take<kKind>(a, hn::LoadU(d, p + 2 * stride));
      b = Take<kKind>(b, hn::LoadU(d, p + 3 * stride));
      a = Take<kKind>(a, hn::LoadU(d, p + 4 * stride));
      b = Take<kKind>(b, hn::LoadU(d, p + 5 * stride));
      a = Take<kKind>(a, hn::LoadU(d, p + 6 * stride));
      b = Take<kKind>(b, hn::LoadU(d, p + 7 * stride));
      hn::StoreU(Combine<kKind>(a, b), d, acc + j);
    }
    for (; j < columns; ++j) {
      for (int r = 0; r < 8; ++r)
        acc[j] = combine<kKind>(acc[j], contribution<kKind, F>(x[r * stride + j]));
    }
  }
  for (; rows > 0; --rows, x += stride) {
    std::int64_t j = 0;
    for (; j + lanes <= columns; j += lanes) {
      hn::StoreU(Take<kKind>(hn::LoadU(d, acc + j), hn::LoadU(d, x + j)), d, acc + j);
    }
    for (; j < columns; ++j) acc[j] = combine<kKind>(acc[j], contribution<kKind, F>(x[j]));
  }
}

template <Reduction kKind, class F>
void Columns(const F* x, std::int64_t rows, std::int64_t stride, std::int64_t columns, F* acc) {
  constexpr std::int64_t kNarrow = 32;
  if (columns >= kNarrow || stride != columns || rows < 8) {
    return WideColumns<kKind, F>(x, rows, stride, columns, acc);
  }
  // A narrow matrix is a wide one with fewer rows, whose columns stand for the same few in turn.
  std::int64_t fold = 2;
  while (fold * columns < kNarrow) fold *= 2;
  F wide[2 * kNarrow];
  std::fill_n(wide, fold * columns, reduction_identity<kKind, F>());
  const std::int64_t wide_rows = rows / fold;
  WideColumns<kKind, F>(x, wide_rows, fold * columns, fold * columns, wide);
  for (std::int64_t width = fold / 2; width > 0; width /= 2) {
    for (std::int64_t k = 0; k < width * columns; ++k)
      wide[k] = combine<kKind>(wide[k], wide[k + width * columns]);
  }
  for (std::int64_t j = 0; j < columns; ++j) acc[j] = combine<kKind>(acc[j], wide[j]);
  WideColumns<kKind, F>(x + wide_rows * fold * columns, rows - wide_rows * fold, stride, columns,
                        acc);
}

template <class F>
ReduceSteps<F, F> Steps(Reduction kind) {
  switch (kind) {
    case Reduction::kSum: return {Row<Reduction::kSum, F>, Columns<Reduction::kSum, F>};
    case Reduction::kSquares: return {Row<Reduction::kSquares, F>, Columns<Reduction::kSquares, F>};
    case Reduction::kProduct: return {Row<Reduction::kProduct, F>, Columns<Reduction::kProduct, F>};
    case Reduction::kMax: return {Row<Reduction::kMax, F>, Columns<Reduction::kMax, F>};
    default: return {Row<Reduction::kMin, F>, Columns<Reduction::kMin, F>};
  }
}

ReduceSteps<float, float> FloatSteps(Reduction kind) { return Steps<float>(kind); }
ReduceSteps<double, double> DoubleSteps(Reduction kind) { return Steps<double>(kind); }

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(FloatSteps);
HWY_EXPORT(DoubleSteps);

template <>
ReduceSteps<float, float> simd_reduce_steps<float>(Reduction kind) {
  return HWY_DYNAMIC_DISPATCH(FloatSteps)(kind);
}
template <>
ReduceSteps<double, double> simd_reduce_steps<double>(Reduction kind) {
  return HWY_DYNAMIC_DISPATCH(DoubleSteps)(kind);
}

}  // namespace tandem::cpu
#endif
