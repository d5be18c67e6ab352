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

/// The memory of an element, by its number.
inline void* element_at(const TensorView& t, std::int64_t number) {
  return t.as<std::byte>() + number * static_cast<std::int64_t>(size_of(t.type));
}

/// A walk over `sizes` with these strides, which may be zero or negative.
Strides<1> walk(const Sizes& sizes, const Sizes& strides);

/// to[to_walk(i)] = from[from_walk(i)] for each of `count` elements of `bytes` bytes each. The
/// pointers are those of the walks' first elements.
void copy_elements(std::size_t bytes, const void* from, const Strides<1>& from_walk, void* to,
                   const Strides<1>& to_walk, std::int64_t count);

/// All of `from` to all of `to`, which has as many elements.
void copy_all(const TensorView& from, const TensorView& to);
/// Fills with the one element of `value`, which lies on the device.
void fill_from(const TensorView& value, const TensorView& to);
/// Fills with zeros.
void fill_zeros(const TensorView& to);

/// `axis` counted from the front. Throws Failure where there is no such axis.
std::int64_t axis_of(std::int64_t axis, std::int64_t rank, const char* what);
/// Sizes in host memory. Throws Failure for negative ones.
Sizes host_sizes(const TensorView& sizes, const char* what);

}  // namespace tandem::cuda
