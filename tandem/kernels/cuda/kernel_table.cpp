#include "tandem/kernels/cuda/kernel_table.h"

#include <iterator>
#include <vector>

#include "tandem/device/cuda/internal/driver.h"
#include "tandem/device/cuda/internal/nvrtc.h"
#include "tandem/device/cuda/internal/stream.h"
#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

#define TANDEM_CUDA_KERNEL(OP, TYPE_ATTR, TYPES, FUNCTION) void FUNCTION(KernelCall& call);
#define TANDEM_CUDA_KERNEL_OF_TWO(OP, ATTR, TYPES, SECOND_ATTR, SECOND_TYPES, FUNCTION) \
  void FUNCTION(KernelCall& call);
#define TANDEM_CUDA_GENERATED_KERNEL TANDEM_CUDA_KERNEL
#include "tandem/kernels/cuda/kernels.inc"
#undef TANDEM_CUDA_KERNEL
#undef TANDEM_CUDA_KERNEL_OF_TWO
#undef TANDEM_CUDA_GENERATED_KERNEL

namespace {

#define TANDEM_CUDA_TYPES(NAME, ...) constexpr std::int32_t k##NAME[] = {__VA_ARGS__};
#include "tandem/kernels/cuda/type_sets.inc"
#undef TANDEM_CUDA_TYPES

template <void (*kKernel)(KernelCall&)>
void run(TandemKernelContext* context, TandemStatus* status) {
  guarded(status, [&] {
    StreamState::current().commands().set_node(host_api().kernel_node(context));
    KernelCall call(context);
    kKernel(call);
  });
}

#define TANDEM_CUDA_KERNEL(OP, TYPE_ATTR, TYPES, FUNCTION) \
  TandemKernel{.size = sizeof(TandemKernel),               \
               .op = OP,                                   \
               .name = "cuda",                             \
               .type_attr = TYPE_ATTR,                     \
               .types = k##TYPES,                          \
               .num_types = std::size(k##TYPES),           \
               .priority = 0,                              \
               .run = run<FUNCTION>},
#define TANDEM_CUDA_KERNEL_OF_TWO(OP, TYPE_ATTR, TYPES, SECOND_ATTR, SECOND_TYPES, FUNCTION) \
  TandemKernel{.size = sizeof(TandemKernel),                                                 \
               .op = OP,                                                                     \
               .name = "cuda",                                                               \
               .type_attr = TYPE_ATTR,                                                       \
               .types = k##TYPES,                                                            \
               .num_types = std::size(k##TYPES),                                             \
               .priority = 0,                                                                \
               .run = run<FUNCTION>,                                                         \
               .second_type_attr = SECOND_ATTR,                                              \
               .second_types = k##SECOND_TYPES,                                              \
               .num_second_types = std::size(k##SECOND_TYPES)},
#define TANDEM_CUDA_GENERATED_KERNEL(...)
const TandemKernel kKernels[] = {
#include "tandem/kernels/cuda/kernels.inc"
};
#undef TANDEM_CUDA_GENERATED_KERNEL
#define TANDEM_CUDA_GENERATED_KERNEL TANDEM_CUDA_KERNEL
const TandemKernel kGeneratedKernels[] = {
#include "tandem/kernels/cuda/fused/fused.inc"
};
#undef TANDEM_CUDA_KERNEL
#undef TANDEM_CUDA_KERNEL_OF_TWO
#undef TANDEM_CUDA_GENERATED_KERNEL

}  // namespace

std::span<const TandemKernel* const> kernel_table() {
  static const auto* const table = [] {
    auto* all = new std::vector<const TandemKernel*>;
    for (const TandemKernel& kernel : kKernels) all->push_back(&kernel);
    if (Nvrtc::get().usable()) {
      for (const TandemKernel& kernel : kGeneratedKernels) all->push_back(&kernel);
    }
    return all;
  }();
  return *table;
}

}  // namespace tandem::cuda
