#include "tandem/kernels/cuda/array/targets.h"
#include "tandem/kernels/cuda/support/broadcast.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

struct Axes {
  int depth = 1;
  std::int64_t sizes[kMaxAxes] = {};
};

template <class Index>
TANDEM_KERNEL targets_kernel(const Index* indices, std::uint64_t* rows, std::int64_t* updates,
                             std::int64_t n, std::int64_t padded, Axes axes) {
  for (auto i = first_index<std::int64_t>(); i < padded; i += index_step<std::int64_t>()) {
    std::uint64_t row = 0;
    bool inside = i < n;
    for (int d = 0; inside && d < axes.depth; ++d) {
      const auto index = static_cast<std::int64_t>(indices[i * axes.depth + d]);
      inside = index >= 0 && index < axes.sizes[d];
      row = row * static_cast<std::uint64_t>(axes.sizes[d]) + static_cast<std::uint64_t>(index);
    }
    rows[i] = inside ? row : kLastKey;
    updates[i] = i;
  }
}

Targets targets(const KernelCall& call, const TensorView& indices, std::int64_t n, const Axes& axes,
                std::size_t extra, void** beside) {
  if (n == 0 && extra == 0) return {};
  const std::size_t bytes = (sort_bytes(n) + 255) / 256 * 256;
  auto* memory = static_cast<std::byte*>(call.scratch(bytes + extra));
  if (beside) *beside = memory + bytes;
  if (n == 0) return {};
  const SortPairs pairs = sort_pairs_at(memory, n);
  visit_index(indices.type, [&](auto tag) {
    using Index = typename decltype(tag)::type;
    TANDEM_LAUNCH(targets_kernel<Index>, shape_for(pairs.size), 0, indices.as<Index>(), pairs.keys,
                  pairs.values, n, pairs.size, axes);
  });
  sort(pairs);
  return {pairs.keys, pairs.values, n};
}

}  // namespace

Targets row_targets(const KernelCall& call, const TensorView& indices, std::int64_t rows,
                    std::size_t extra, void** beside) {
  Axes axes;
  axes.sizes[0] = rows;
  return targets(call, indices, indices.count, axes, extra, beside);
}

Targets tuple_targets(const KernelCall& call, const TensorView& indices, std::int64_t tuples,
                      std::int64_t depth, const Sizes& sizes) {
  if (depth > kMaxAxes) not_on_gpu("indices of so many axes");
  Axes axes;
  axes.depth = static_cast<int>(depth);
  for (int d = 0; d < axes.depth; ++d) axes.sizes[d] = sizes[static_cast<std::size_t>(d)];
  return targets(call, indices, tuples, axes, 0, nullptr);
}

}  // namespace tandem::cuda
