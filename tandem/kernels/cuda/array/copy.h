#pragma once

#include "tandem/kernels/cuda/support/broadcast.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {

/// Strides in elements of a row-major tensor.
inline Sizes row_major_strides(const Sizes& sizes) {
  Sizes strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

/// A walk over `sizes` with these strides, which may be zero or negative.
Strides<1> walk(const Sizes& sizes, const Sizes& strides);

/// to[to_walk(i)] = from[from_walk(i)] for each of `count` elements of `bytes` bytes each. The
/// pointers are those of the walks' first elements.
void copy_elements(std::size_t bytes, const void* from, const Strides<1>& from_walk, void* to,
                   const Strides<1>& to_walk, std::int64_t count);

}  // namespace tandem::cuda
