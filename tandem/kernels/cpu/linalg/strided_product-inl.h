// The products of strided_product.h, for any type of number. Compiled once for each kind of
// processor; include it after foreach_target.h.

#include <algorithm>
#include <cstdint>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"
#include "tandem/kernels/cpu/linalg/strided_product.h"

#if defined(TANDEM_KERNELS_CPU_STRIDED_PRODUCT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_KERNELS_CPU_STRIDED_PRODUCT_INL_H
#undef TANDEM_KERNELS_CPU_STRIDED_PRODUCT_INL_H
#else
#define TANDEM_KERNELS_CPU_STRIDED_PRODUCT_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
template <class T>
using DOf = hn::ScalableTag<T>;
template <class T>
using VOf = hn::Vec<DOf<T>>;

// A tile of c stays in registers: with 32 of them 24, with 16 of them 12, beside a row of b.
constexpr int kMaxVecs = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
// So many rows of b stay in the nearest cache while all rows of a pass.
constexpr std::int64_t kDepth = 128;

template <class T>
HWY_INLINE VOf<T> MultiplyAdd(VOf<T> x, VOf<T> y, VOf<T> sum) {
  if constexpr (hwy::IsFloat<T>()) return hn::MulAdd(x, y, sum);
  return hn::Add(hn::Mul(x, y), sum);
}

// Neighbouring vectors of one row, of which the last one may be shorter. Members, not an array,
// which compilers would keep in memory.
template <class T, int kVecs>
struct Line {
  using V = VOf<T>;
  V v0, v1, v2, v3;

  HWY_INLINE void Clear() { v0 = v1 = v2 = v3 = hn::Zero(DOf<T>()); }
  template <bool kTail>
  HWY_INLINE void Load(const T* from, std::int64_t last) {
    const DOf<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto end = [&](const T* at) HWY_ATTR {
      if constexpr (kTail) return LoadTail(d, at, last);
      return hn::LoadU(d, at);
    };
    v0 = kVecs == 1 ? end(from) : hn::LoadU(d, from);
    if constexpr (kVecs == 2) v1 = end(from + lanes);
    if constexpr (kVecs > 2) v1 = hn::LoadU(d, from + lanes);
    if constexpr (kVecs == 3) v2 = end(from + 2 * lanes);
    if constexpr (kVecs > 3) v2 = hn::LoadU(d, from + 2 * lanes);
    if constexpr (kVecs == 4) v3 = end(from + 3 * lanes);
  }
  template <bool kTail>
  HWY_INLINE void Store(T* to, std::int64_t last) const {
    const DOf<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const auto end = [&](V v, T* at) HWY_ATTR {
      if constexpr (kTail)
        StoreTail(v, d, at, last);
      else
        hn::StoreU(v, d, at);
    };
    if constexpr (kVecs == 1) end(v0, to);
    if constexpr (kVecs > 1) hn::StoreU(v0, d, to);
    if constexpr (kVecs == 2) end(v1, to + lanes);
    if constexpr (kVecs > 2) hn::StoreU(v1, d, to + lanes);
    if constexpr (kVecs == 3) end(v2, to + 2 * lanes);
    if constexpr (kVecs > 3) hn::StoreU(v2, d, to + 2 * lanes);
    if constexpr (kVecs == 4) end(v3, to + 3 * lanes);
  }
  HWY_INLINE void MulAdd(V x, const Line& b) {
    v0 = MultiplyAdd<T>(x, b.v0, v0);
    if constexpr (kVecs > 1) v1 = MultiplyAdd<T>(x, b.v1, v1);
    if constexpr (kVecs > 2) v2 = MultiplyAdd<T>(x, b.v2, v2);
    if constexpr (kVecs > 3) v3 = MultiplyAdd<T>(x, b.v3, v3);
  }
};

// Some rows of it.
template <class T, int kRows, int kVecs>
struct Lines {
  Line<T, kVecs> line;
  Lines<T, kRows - 1, kVecs> others;

  HWY_INLINE void Clear() {
    line.Clear();
    others.Clear();
  }
  template <bool kTail>
  HWY_INLINE void Load(const T* from, std::int64_t row, std::int64_t last) {
    line.template Load<kTail>(from, last);
    others.template Load<kTail>(from + row, row, last);
  }
  template <bool kTail>
  HWY_INLINE void Store(T* to, std::int64_t row, std::int64_t last) const {
    line.template Store<kTail>(to, last);
    others.template Store<kTail>(to + row, row, last);
  }
  HWY_INLINE void MulAdd(const T* a, std::int64_t row, const Line<T, kVecs>& b) {
    line.MulAdd(hn::Set(DOf<T>(), *a), b);
    others.MulAdd(a + row, row, b);
  }
};
template <class T, int kVecs>
struct Lines<T, 0, kVecs> {
  HWY_INLINE void Clear() {}
  template <bool kTail>
  HWY_INLINE void Load(const T*, std::int64_t, std::int64_t) {}
  template <bool kTail>
  HWY_INLINE void Store(T*, std::int64_t, std::int64_t) const {}
  HWY_INLINE void MulAdd(const T*, std::int64_t, const Line<T, kVecs>&) {}
};

// Rows of c from `i` on, in the columns from `j` on, with the terms [begin, end) of their sums.
template <class T, int kRows, int kVecs, bool kTail>
HWY_INLINE void Tile(const StridedProductOf<T>& p, std::int64_t i, std::int64_t j,
                     std::int64_t begin, std::int64_t end, std::int64_t last) {
  T* const c = p.c + i * p.c_row + j;
  Lines<T, kRows, kVecs> sums;
  if (begin > 0 || p.add)
    sums.template Load<kTail>(c, p.c_row, last);
  else
    sums.Clear();
  const T* a = p.a + i * p.a_row + begin * p.a_column;
  const T* b = p.b + begin * p.b_row + j;
  for (std::int64_t l = begin; l < end; ++l, a += p.a_column, b += p.b_row) {
    Line<T, kVecs> line;
    line.template Load<kTail>(b, last);
    sums.MulAdd(a, p.a_row, line);
  }
  sums.template Store<kTail>(c, p.c_row, last);
}

template <class T, int kVecs, bool kTail>
void Columns(const StridedProductOf<T>& p, std::int64_t j, std::int64_t last) {
  std::int64_t begin = 0;
  do {
    const std::int64_t end = std::min(p.k, begin + kDepth);
    std::int64_t i = 0;
    if constexpr (kVecs * 2 <= kMaxVecs)
      for (; i + 12 <= p.m; i += 12) Tile<T, 12, kVecs, kTail>(p, i, j, begin, end, last);
    for (; i + 6 <= p.m; i += 6) Tile<T, 6, kVecs, kTail>(p, i, j, begin, end, last);
    for (; i + 2 <= p.m; i += 2) Tile<T, 2, kVecs, kTail>(p, i, j, begin, end, last);
    for (; i < p.m; ++i) Tile<T, 1, kVecs, kTail>(p, i, j, begin, end, last);
    begin = end;
  } while (begin < p.k);
}

template <class T, int kVecs>
HWY_INLINE void Columns(const StridedProductOf<T>& p, std::int64_t j, std::int64_t last,
                        bool tail) {
  if (tail)
    Columns<T, kVecs, true>(p, j, last);
  else
    Columns<T, kVecs, false>(p, j, last);
}

template <class T>
void MultiplyStrided(const StridedProductOf<T>& p) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DOf<T>()));
  for (std::int64_t j = 0; j < p.n; j += kMaxVecs * lanes) {
    const std::int64_t left = std::min(p.n - j, kMaxVecs * lanes);
    const std::int64_t vecs = (left + lanes - 1) / lanes, last = left - (vecs - 1) * lanes;
    const bool tail = last != lanes;
    if (vecs == 1) Columns<T, 1>(p, j, last, tail);
    if (vecs == 2) Columns<T, 2>(p, j, last, tail);
    if constexpr (kMaxVecs > 2) {
      if (vecs == 3) Columns<T, 3>(p, j, last, tail);
      if (vecs == 4) Columns<T, 4>(p, j, last, tail);
    }
  }
}

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
