// What follows a generated kernel that leaves its sums in pieces.

#include "tandem/kernels/cuda/fused/sums.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

// In double: there are few pieces, each of which many rows went into.
template <class T>
TANDEM_KERNEL finish_sum_kernel(const Compute<T>* partial, T* y, std::int64_t columns,
                                std::int64_t pieces, std::int64_t step, double divisor) {
  for (auto i = first_index<std::int64_t>(); i < columns; i += index_step<std::int64_t>()) {
    double sum = 0;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      sum += static_cast<double>(partial[piece * step + i]);
    }
    y[i] = store<T>(static_cast<Compute<T>>(sum / divisor));
  }
}

}  // namespace

void finish_sum(const void* partial, const TensorView& out, std::int64_t columns,
                std::int64_t pieces, std::int64_t num_sums, std::int64_t sum, double divisor) {
  if (!visit_floating(out.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(finish_sum_kernel<T>, shape_for(columns), 0,
                      static_cast<const Compute<T>*>(partial) + sum * columns, out.as<T>(), columns,
                      pieces, num_sums * columns, divisor);
      })) {
    no_kernel_for(out.type);
  }
}

}  // namespace tandem::cuda
