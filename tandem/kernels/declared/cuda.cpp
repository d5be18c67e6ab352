// What kernels GPUs have, for processes that have no driver: planners, masters and td ops. They are
// declared from the list that libtandem_cuda.so is compiled from. Its own kernels go first where it
// is loaded.

#include <deque>

#include "tandem/core/error.h"
#include "tandem/graph/foreign_kernels.h"
#include "tandem/graph/kernel.h"

namespace tandem {
namespace {

#define TANDEM_CUDA_TYPES(NAME, ...) constexpr int k##NAME[] = {__VA_ARGS__};
#include "tandem/kernels/cuda/type_sets.inc"
#undef TANDEM_CUDA_TYPES

template <std::size_t kCount>
constexpr DTypeSet set_of(const int (&numbers)[kCount]) {
  DTypeSet types;
  for (const int number : numbers) types = types | DTypeSet{static_cast<DType>(number)};
  return types;
}

void refuse(KernelContext& context) {
  throw UnavailableError(cat("The CUDA kernel of ", context.op().name,
                             " is known, but libtandem_cuda.so is not loaded. `td devices` says "
                             "why there are no GPUs."));
}

constexpr KernelDecl declared(const char* op, TypeConstraint first, TypeConstraint second = {}) {
  return {.op = op,
          .name = "declared",
          .kernel_class = "cuda",
          .types = {first, second},
          .priority = kDeclaredPriority,
          .run = refuse};
}

#define TANDEM_CUDA_KERNEL(OP, ATTR, TYPES, FUNCTION) \
  declared(OP, ATTR ? TypeConstraint{ATTR, set_of(k##TYPES)} : TypeConstraint{}),
#define TANDEM_CUDA_KERNEL_OF_TWO(OP, ATTR, TYPES, SECOND_ATTR, SECOND_TYPES, FUNCTION) \
  declared(OP, {ATTR, set_of(k##TYPES)}, {SECOND_ATTR, set_of(k##SECOND_TYPES)}),
#define TANDEM_CUDA_GENERATED_KERNEL TANDEM_CUDA_KERNEL
constexpr KernelDecl kDeclared[] = {
#include "tandem/kernels/cuda/kernels.inc"
};
#undef TANDEM_CUDA_KERNEL
#undef TANDEM_CUDA_KERNEL_OF_TWO
#undef TANDEM_CUDA_GENERATED_KERNEL

const FusesRegistration kFusible[] = {
#define TANDEM_CUDA_FUSIBLE(OP, FUNCTION, ELEMENTS) {OP, "cuda"},
#include "tandem/kernels/cuda/elementwise/fusible.inc"
#undef TANDEM_CUDA_FUSIBLE
};

const bool kRegistered = [] {
  static auto* const all = new std::deque<KernelRegistration>;  // each chains itself into a list
  for (const KernelDecl& kernel : kDeclared) all->emplace_back(kernel);
  return true;
}();

}  // namespace
}  // namespace tandem
