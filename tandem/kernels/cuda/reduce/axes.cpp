#include "tandem/kernels/cuda/reduce/axes.h"

#include <string>

namespace tandem::cuda {
namespace {

// Joins with the axis before where both are walked as one.
void append(Strides<1>& to, std::int64_t size, std::int64_t stride) {
  if (size == 1) return;
  if (to.rank > 0 && to.strides[0][to.rank - 1] == stride * size) {
    to.sizes[to.rank - 1] *= size;
    to.strides[0][to.rank - 1] = stride;
    return;
  }
  if (to.rank == kMaxAxes) not_on_gpu("a reduction of so many separate axes");
  to.sizes[to.rank] = size;
  to.strides[0][to.rank] = stride;
  ++to.rank;
}

}  // namespace

ReductionAxes reduction_axes(const Sizes& sizes, const Sizes& axes, bool keep_dims) {
  const auto rank = static_cast<std::int64_t>(sizes.size());
  std::vector<bool> is_reduced(sizes.size());
  for (const std::int64_t axis : axes) {
    if (axis < -rank || axis >= rank) {
      refuse("Invalid reduction dimension (" + std::to_string(axis) + " for input with " +
             std::to_string(rank) + " dimension(s)");
    }
    const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
    if (is_reduced[at]) refuse("Axes contains duplicate dimension: " + std::to_string(at));
    is_reduced[at] = true;
  }
  ReductionAxes made;
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (is_reduced[i]) {
      append(made.reduced, sizes[i], strides[i]);
      made.elements *= sizes[i];
      if (keep_dims) made.output.push_back(1);
    } else {
      append(made.kept, sizes[i], strides[i]);
      made.results *= sizes[i];
      made.output.push_back(sizes[i]);
    }
  }
  return made;
}

}  // namespace tandem::cuda
