#pragma once

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::sparse {

// Sums over groups of rows that are picked by index first: row indices[i] of `data` goes to row
// segment_ids[i] of the result (both int32 or int64, rank 1, the ids never falling), as
// td::gather and math::segment_sum would do together, without the rows between. Without
// num_segments the result has one row more than the last id; segments without rows are zero.

TANDEM_EXPORT Tensor segment_sum(Tensor data, Tensor indices, Tensor segment_ids,
                                 Tensor num_segments = {});
TANDEM_EXPORT Tensor segment_mean(Tensor data, Tensor indices, Tensor segment_ids,
                                  Tensor num_segments = {});
/// The sum divided by the square root of the number of rows.
TANDEM_EXPORT Tensor segment_sqrt_n(Tensor data, Tensor indices, Tensor segment_ids,
                                    Tensor num_segments = {});

}  // namespace tandem::sparse
