#include "tandem/kernels/cpu/elementwise/float16_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/elementwise/float16_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/elementwise/float16_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

void WidenHalf(const Half* from, float* to, std::int64_t n) { ToFloats(from, to, n); }
void NarrowHalf(const float* from, Half* to, std::int64_t n) { FromFloats(from, to, n); }
void WidenBFloat16(const BFloat16* from, float* to, std::int64_t n) { ToFloats(from, to, n); }
void NarrowBFloat16(const float* from, BFloat16* to, std::int64_t n) { FromFloats(from, to, n); }

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(WidenHalf);
HWY_EXPORT(NarrowHalf);
HWY_EXPORT(WidenBFloat16);
HWY_EXPORT(NarrowBFloat16);

void to_floats(const Half* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(WidenHalf)(from, to, n);
}
void to_floats(const BFloat16* from, float* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(WidenBFloat16)(from, to, n);
}
void from_floats(const float* from, Half* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(NarrowHalf)(from, to, n);
}
void from_floats(const float* from, BFloat16* to, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(NarrowBFloat16)(from, to, n);
}

}  // namespace tandem::cpu
#endif
