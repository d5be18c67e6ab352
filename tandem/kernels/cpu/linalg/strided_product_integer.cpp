#include "tandem/kernels/cpu/linalg/strided_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/linalg/strided_product_integer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/linalg/strided_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

// Sums of integers wrap. `hn::SumOfLanes` adds unsigned lanes as signed ones for AVX-512, which
// leaves overflow undefined.
template <class T>
T WrappingSum(VOf<T> v) {
  const DOf<T> d;
  HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, lanes);
  T sum = 0;
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) sum += lanes[i];
  return sum;
}

// Four rows share what is loaded of the vector.
template <class T>
void TimesVector(const T* a, const T* x, std::int64_t m, std::int64_t k, T* c) {
  const DOf<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < m; i += 4) {
    const T* const a0 = a + i * k;
    const T* const a1 = a + std::min(i + 1, m - 1) * k;
    const T* const a2 = a + std::min(i + 2, m - 1) * k;
    const T* const a3 = a + std::min(i + 3, m - 1) * k;
    VOf<T> s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    std::int64_t l = 0;
    for (; l + lanes <= k; l += lanes) {
      const VOf<T> v = hn::LoadU(d, x + l);
      s0 = MultiplyAdd<T>(hn::LoadU(d, a0 + l), v, s0);
      s1 = MultiplyAdd<T>(hn::LoadU(d, a1 + l), v, s1);
      s2 = MultiplyAdd<T>(hn::LoadU(d, a2 + l), v, s2);
      s3 = MultiplyAdd<T>(hn::LoadU(d, a3 + l), v, s3);
    }
    T sums[4] = {WrappingSum<T>(s0), WrappingSum<T>(s1), WrappingSum<T>(s2), WrappingSum<T>(s3)};
    for (; l < k; ++l) {
      sums[0] += a0[l] * x[l];
      sums[1] += a1[l] * x[l];
      sums[2] += a2[l] * x[l];
      sums[3] += a3[l] * x[l];
    }
    for (std::int64_t j = 0; j < std::min<std::int64_t>(4, m - i); ++j) c[i + j] = sums[j];
  }
}

void IntsTimesVector(const std::uint32_t* a, const std::uint32_t* x, std::int64_t m, std::int64_t k,
                     std::uint32_t* c) {
  TimesVector(a, x, m, k, c);
}
void LongsTimesVector(const std::uint64_t* a, const std::uint64_t* x, std::int64_t m,
                      std::int64_t k, std::uint64_t* c) {
  TimesVector(a, x, m, k, c);
}
void Ints(const StridedProductOf<std::uint32_t>& p) { MultiplyStrided(p); }
void Longs(const StridedProductOf<std::uint64_t>& p) { MultiplyStrided(p); }

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(IntsTimesVector);
HWY_EXPORT(LongsTimesVector);
HWY_EXPORT(Ints);
HWY_EXPORT(Longs);

void multiply_strided(const StridedProductOf<std::uint32_t>& product) {
  HWY_DYNAMIC_DISPATCH(Ints)(product);
}
void multiply_strided(const StridedProductOf<std::uint64_t>& product) {
  HWY_DYNAMIC_DISPATCH(Longs)(product);
}

void multiply_vector(const std::uint32_t* a, const std::uint32_t* x, std::int64_t m, std::int64_t k,
                     std::uint32_t* c) {
  HWY_DYNAMIC_DISPATCH(IntsTimesVector)(a, x, m, k, c);
}
void multiply_vector(const std::uint64_t* a, const std::uint64_t* x, std::int64_t m, std::int64_t k,
                     std::uint64_t* c) {
  HWY_DYNAMIC_DISPATCH(LongsTimesVector)(a, x, m, k, c);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
