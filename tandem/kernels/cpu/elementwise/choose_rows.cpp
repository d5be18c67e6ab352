#include "tandem/kernels/cpu/elementwise/choose_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/choose_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

// Bytes as wide as the elements that they choose.
template <class D, class V>
HWY_INLINE hn::Vec<D> Widened(D d, V bytes) {
  constexpr std::size_t size = sizeof(hn::TFromD<D>);
  if constexpr (size == 1) {
    return bytes;
  } else if constexpr (size == 8) {
    return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), bytes));
  } else {
    return hn::PromoteTo(d, bytes);
  }
}

template <class T>
void Choose(const void* condition, const void* then, bool then_repeats, const void* otherwise,
            bool otherwise_repeats, void* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* const which = static_cast<const std::uint8_t*>(condition);
  const T* const t = static_cast<const T*>(then);
  const T* const e = static_cast<const T*>(otherwise);
  T* const to = static_cast<T*>(out);
  const auto zero = hn::Zero(d);
  const auto one_then = hn::Set(d, then_repeats ? *t : T{});
  const auto one_otherwise = hn::Set(d, otherwise_repeats ? *e : T{});
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto no = hn::Eq(Widened(d, hn::LoadU(bytes, which + i)), zero);
    const auto a = then_repeats ? one_then : hn::LoadU(d, t + i);
    const auto b = otherwise_repeats ? one_otherwise : hn::LoadU(d, e + i);
    hn::StoreU(hn::IfThenElse(no, b, a), d, to + i);
  }
  for (; i < n; ++i) to[i] = which[i] != 0 ? t[then_repeats ? 0 : i] : e[otherwise_repeats ? 0 : i];
}

}  // namespace

ChooseRow RowOf(std::size_t size) {
  switch (size) {
    case 1: return Choose<std::uint8_t>;
    case 2: return Choose<std::uint16_t>;
    case 4: return Choose<std::uint32_t>;
    case 8: return Choose<std::uint64_t>;
    default: return nullptr;
  }
}

}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(RowOf);
ChooseRow choose_row(std::size_t element_size) { return HWY_DYNAMIC_DISPATCH(RowOf)(element_size); }

}  // namespace tandem::cpu
#endif
