#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::math {

// Reductions over groups of rows. segment_ids (int32 or int64) say for each row of `data` to which
// row of the result it goes.

/// Any order of ids; their shape is a beginning of data's. Rows of negative ids are dropped, ids of
/// num_segments or more throw InvalidArgumentError. Empty segments give 0, 1, the lowest or the
/// highest number.
TANDEM_EXPORT Tensor unsorted_segment_sum(Tensor data, Tensor segment_ids, Tensor num_segments);
TANDEM_EXPORT Tensor unsorted_segment_prod(Tensor data, Tensor segment_ids, Tensor num_segments);
TANDEM_EXPORT Tensor unsorted_segment_max(Tensor data, Tensor segment_ids, Tensor num_segments);
TANDEM_EXPORT Tensor unsorted_segment_min(Tensor data, Tensor segment_ids, Tensor num_segments);
TANDEM_EXPORT Tensor unsorted_segment_mean(Tensor data, Tensor segment_ids, Tensor num_segments);

/// Ids of rank 1 that never fall; the result has one row more than the last id, empty segments give
/// 0 (1 for prod).
TANDEM_EXPORT Tensor segment_sum(Tensor data, Tensor segment_ids);
TANDEM_EXPORT Tensor segment_mean(Tensor data, Tensor segment_ids);
TANDEM_EXPORT Tensor segment_prod(Tensor data, Tensor segment_ids);
TANDEM_EXPORT Tensor segment_max(Tensor data, Tensor segment_ids);
TANDEM_EXPORT Tensor segment_min(Tensor data, Tensor segment_ids);

}  // namespace tandem::math
