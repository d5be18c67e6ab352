#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Rows dealt out by number, put together again, and compared as wholes.

/// The rows of `data` sorted into num_partitions tensors: `partitions` (int32, its shape a
/// beginning of data's) says for each row which. A number out of range throws InvalidArgumentError.
TANDEM_EXPORT std::vector<Tensor> dynamic_partition(Tensor data, Tensor partitions,
                                                    std::int64_t num_partitions);
/// The reverse: rows data[k][i] go to row indices[k][i] of the result (int32); of several for one
/// row the last wins, rows without an index are zero.
TANDEM_EXPORT Tensor dynamic_stitch(const std::vector<Tensor>& indices,
                                    const std::vector<Tensor>& data);
/// Like dynamic_stitch, for indices of which each occurs once.
TANDEM_EXPORT Tensor parallel_dynamic_stitch(const std::vector<Tensor>& indices,
                                             const std::vector<Tensor>& data);

struct ListDiff {
  Tensor out;  ///< the elements of x that y has not, in x's order
  Tensor idx;  ///< their places in x
};
/// x and y: rank 1.
TANDEM_EXPORT ListDiff setdiff1d(Tensor x, Tensor y, DType index_dtype = int32);

/// Like unique, for the slices of x along `axis`.
TANDEM_EXPORT UniqueResult unique_slices(Tensor x, std::int64_t axis, DType out_idx = int32);
TANDEM_EXPORT UniqueCounts unique_slices_with_counts(Tensor x, std::int64_t axis,
                                                     DType out_idx = int32);

}  // namespace tandem
