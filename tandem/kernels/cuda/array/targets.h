#pragma once

#include "tandem/kernels/cuda/support/kernel_call.h"
#include "tandem/kernels/cuda/support/sort.h"

// Updates of rows by index, in the same order in every run: updates are sorted by the row that they
// go to, and one thread works through all updates of one element.

namespace tandem::cuda {

/// Updates in the order of their targets: update values[p] goes to row keys[p]. Those with kLastKey
/// go nowhere. `size` is that of the updates.
struct Targets {
  const std::uint64_t* rows = nullptr;
  const std::int64_t* updates = nullptr;
  std::int64_t size = 0;
};

/// From indices (int32 or int64) of rows; those outside of [0, rows) go nowhere, as on TensorFlow's
/// GPUs. `extra` bytes of scratch memory lie at `*beside`.
Targets row_targets(const KernelCall& call, const TensorView& indices, std::int64_t rows,
                    std::size_t extra = 0, void** beside = nullptr);

/// From index tuples of `depth` numbers into the first axes of `sizes`.
Targets tuple_targets(const KernelCall& call, const TensorView& indices, std::int64_t tuples,
                      std::int64_t depth, const Sizes& sizes);

}  // namespace tandem::cuda
