#pragma once

#include <vector>

#include "tandem/kernels/cuda/support/broadcast.h"

namespace tandem::cuda {

/// A tensor seen as results, each of which joins elements: offset of a result plus offset of one of
/// its elements.
struct ReductionAxes {
  Strides<1> kept;     ///< of the results, in their order
  Strides<1> reduced;  ///< of the elements of one result
  std::int64_t results = 1;
  std::int64_t elements = 1;
  Sizes output;  ///< with or without the reduced axes
};

/// `axes` may be negative. Throws Failure for one that does not exist or stands twice.
ReductionAxes reduction_axes(const Sizes& sizes, const Sizes& axes, bool keep_dims);

}  // namespace tandem::cuda
