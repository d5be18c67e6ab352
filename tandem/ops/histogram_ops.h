#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// How many values fall into each of `nbins` equal parts of value_range = [low, high]; what lies
/// outside counts at the ends. Throws InvalidArgumentError unless low < high and nbins > 0, and for
/// NaN.
TANDEM_EXPORT Tensor histogram_fixed_width(Tensor values, Tensor value_range,
                                           std::int64_t nbins = 100, DType dtype = int32);

/// The index of the first of the ascending `sorted_sequence` (in its last axis) that is not smaller
/// than each of `values`; with right = true, of the first that is larger. The axes before the last
/// agree.
TANDEM_EXPORT Tensor searchsorted(Tensor sorted_sequence, Tensor values, bool right = false,
                                  DType out_type = int32);

namespace math {

/// How often each of 0 … size - 1 occurs in `arr` (int32 or int64, rank 1, or 2 for one row of
/// counts for each row); larger values do not count, negative ones throw InvalidArgumentError.
/// `weights`, if given, are added up instead of ones; `binary_output` gives only whether there is
/// any.
TANDEM_EXPORT Tensor bincount(Tensor arr, std::int64_t size, Tensor weights = {},
                              DType dtype = int32, bool binary_output = false);

}  // namespace math

namespace nn {

/// For each value the number of ascending `boundaries` that are not above it.
TANDEM_EXPORT Tensor bucketize(Tensor input, const std::vector<float>& boundaries);
/// The n-th smallest (or largest) entry of each last axis, counted from 0.
TANDEM_EXPORT Tensor nth_element(Tensor input, std::int64_t n, bool reverse = false);

}  // namespace nn

namespace linalg {

/// Vector products of vectors of three entries in the last axis; the shapes are equal.
TANDEM_EXPORT Tensor cross(Tensor a, Tensor b);

}  // namespace linalg
}  // namespace tandem
