#include "tandem/kernels/cpu/linalg/strided_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tandem/kernels/cpu/linalg/strided_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tandem/kernels/cpu/linalg/strided_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tandem::cpu::HWY_NAMESPACE {
namespace {

void Floats(const StridedProductOf<float>& p) { MultiplyStrided(p); }

}  // namespace
}  // namespace tandem::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tandem::cpu {

HWY_EXPORT(Floats);

void multiply_strided(const StridedProductOf<float>& product) {
  HWY_DYNAMIC_DISPATCH(Floats)(product);
}

}  // namespace tandem::cpu
#endif  // HWY_ONCE
