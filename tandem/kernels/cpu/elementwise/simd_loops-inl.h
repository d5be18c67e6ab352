// Loops of elementwise.h in vectors: F is a class with `V operator()(D d, V x…) const`, the same
// for every lane. Compiled once for each kind of processor; include it after foreach_target.h.

#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#if defined(TANDEM_KERNELS_CPU_SIMD_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TANDEM_KERNELS_CPU_SIMD_LOOPS_INL_H
#undef TANDEM_KERNELS_CPU_SIMD_LOOPS_INL_H
#else
#define TANDEM_KERNELS_CPU_SIMD_LOOPS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The elements that are left when there are too few for a vector. Masked loads and stores do not
// touch what they leave out on processors that have them, for elements of at least 4 bytes;
// elsewhere the elements go through a buffer.
#undef TANDEM_MASKED_TAILS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define TANDEM_MASKED_TAILS 1
#else
#define TANDEM_MASKED_TAILS 0
#endif

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadTail(D d, const T* from, std::int64_t n) {
  if constexpr (TANDEM_MASKED_TAILS && sizeof(T) >= 4) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(n)), d, from);
  } else {
    HWY_ALIGN T each[hn::MaxLanes(d)] = {};
    std::memcpy(each, from, static_cast<std::size_t>(n) * sizeof(T));
    return hn::Load(d, each);
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreTail(hn::Vec<D> v, D d, T* to, std::int64_t n) {
  if constexpr (TANDEM_MASKED_TAILS && sizeof(T) >= 4) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, to);
  } else {
    HWY_ALIGN T each[hn::MaxLanes(d)];
    hn::Store(v, d, each);
    std::memcpy(to, each, static_cast<std::size_t>(n) * sizeof(T));
  }
}

template <class F, class T>
void Unary(const void* x, void* out, std::int64_t n, float /*parameter*/) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(out);
  const F f;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, from + i)), d, to + i);
  if (i < n) StoreTail(f(d, LoadTail(d, from + i, n - i)), d, to + i, n - i);
}

// Loops for float, calculated in double.
template <class F>
void UnaryInDouble(const void* x, void* out, std::int64_t n, float /*parameter*/) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float* from = static_cast<const float*>(x);
  float* to = static_cast<float*>(out);
  const F f;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(narrow, from + i));
    hn::StoreU(hn::DemoteTo(narrow, f(d, wide)), narrow, to + i);
  }
  if (i == n) return;
  const auto wide = hn::PromoteTo(d, LoadTail(narrow, from + i, n - i));
  StoreTail(hn::DemoteTo(narrow, f(d, wide)), narrow, to + i, n - i);
}

// Binary of float, calculated in double.
template <class F>
void BinaryInDouble(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar,
                    bool b_scalar, float /*parameter*/) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float* x = static_cast<const float*>(a);
  const float* y = static_cast<const float*>(b);
  float* to = static_cast<float*>(out);
  const F f;
  for (std::int64_t i = 0; i < n; i += lanes) {
    const std::int64_t m = n - i < lanes ? n - i : lanes;
    const auto load = [&](const float* from, bool scalar) HWY_ATTR {
      if (scalar) return hn::Set(narrow, *from);
      return m == lanes ? hn::LoadU(narrow, from + i) : LoadTail(narrow, from + i, m);
    };
    const auto u = hn::PromoteTo(d, load(x, a_scalar)), v = hn::PromoteTo(d, load(y, b_scalar));
    const auto result = hn::DemoteTo(narrow, f(d, u, v));
    if (m == lanes) {
      hn::StoreU(result, narrow, to + i);
    } else {
      StoreTail(result, narrow, to + i, m);
    }
  }
}

// A mask as bytes of 0 and 1.
template <class D>
HWY_INLINE auto BytesOf(hn::Mask<D> m, D /*d*/) {
  const hn::Rebind<std::uint8_t, D> d8;
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const hn::RebindToUnsigned<D> du;
    return hn::TruncateTo(d8, hn::IfThenElseZero(hn::RebindMask(du, m), hn::Set(du, 1)));
  } else {
    const hn::RebindToSigned<D> di;
    return hn::DemoteTo(d8, hn::IfThenElseZero(hn::RebindMask(di, m), hn::Set(di, 1)));
  }
}
template <class D>
HWY_INLINE void PutBools(hn::Mask<D> m, D d, bool* to, std::int64_t n, bool whole) {
  const hn::Rebind<std::uint8_t, D> d8;
  if (whole) return hn::StoreU(BytesOf(m, d), d8, reinterpret_cast<std::uint8_t*>(to));
  HWY_ALIGN std::uint8_t each[HWY_MAX_BYTES];
  hn::StoreU(BytesOf(m, d), d8, each);
  for (std::int64_t i = 0; i < n; ++i) to[i] = each[i] != 0;
}

template <class F, class T>
void Binary(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar, bool b_scalar,
            float /*parameter*/) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* to = static_cast<T*>(out);
  const F f;
  std::int64_t i = 0;
  if (a_scalar) {
    const auto v = hn::Set(d, *x);
    for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, v, hn::LoadU(d, y + i)), d, to + i);
  } else if (b_scalar) {
    const auto v = hn::Set(d, *y);
    for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i), v), d, to + i);
  } else {
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(f(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, to + i);
  }
  if (i >= n) return;
  const auto u = a_scalar ? hn::Set(d, *x) : LoadTail(d, x + i, n - i);
  const auto v = b_scalar ? hn::Set(d, *y) : LoadTail(d, y + i, n - i);
  StoreTail(f(d, u, v), d, to + i, n - i);
}

// F gives a mask.
template <class F, class T>
void Compare(const void* a, const void* b, void* out, std::int64_t n, bool a_scalar, bool b_scalar,
             float /*parameter*/) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  bool* to = static_cast<bool*>(out);
  const F f;
  std::int64_t i = 0;
  if (a_scalar) {
    const auto v = hn::Set(d, *x);
    for (; i + lanes <= n; i += lanes)
      PutBools(f(d, v, hn::LoadU(d, y + i)), d, to + i, lanes, true);
  } else if (b_scalar) {
    const auto v = hn::Set(d, *y);
    for (; i + lanes <= n; i += lanes)
      PutBools(f(d, hn::LoadU(d, x + i), v), d, to + i, lanes, true);
  } else {
    for (; i + lanes <= n; i += lanes) {
      PutBools(f(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, to + i, lanes, true);
    }
  }
  if (i >= n) return;
  const auto u = a_scalar ? hn::Set(d, *x) : LoadTail(d, x + i, n - i);
  const auto v = b_scalar ? hn::Set(d, *y) : LoadTail(d, y + i, n - i);
  PutBools(f(d, u, v), d, to + i, n - i, false);
}

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
