#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Elements picked and put by computed indices (int32 or int64). An index out of range throws
// InvalidArgumentError.

/// Slices of `params` along an axis, as `indices` name them: the indices' shape stands in the place
/// of that axis. The first batch_dims axes of both go together. axis: batch_dims by default.
TANDEM_EXPORT Tensor gather(Tensor params, Tensor indices, std::optional<std::int64_t> axis = {},
                            std::int64_t batch_dims = 0);
/// Elements or slices of `params` named by index tuples, the last axis of `indices`.
TANDEM_EXPORT Tensor gather_nd(Tensor params, Tensor indices, std::int64_t batch_dims = 0);
/// Zeros of `shape`, to which updates are added at the index tuples in the last axis of `indices`.
TANDEM_EXPORT Tensor scatter_nd(Tensor indices, Tensor updates, const IntList& shape);
/// A copy of `tensor` with updates in place of, added to, or taken from what was at the index
/// tuples.
TANDEM_EXPORT Tensor tensor_scatter_nd_update(Tensor tensor, Tensor indices, Tensor updates);
TANDEM_EXPORT Tensor tensor_scatter_nd_add(Tensor tensor, Tensor indices, Tensor updates);
TANDEM_EXPORT Tensor tensor_scatter_nd_sub(Tensor tensor, Tensor indices, Tensor updates);
TANDEM_EXPORT Tensor tensor_scatter_nd_max(Tensor tensor, Tensor indices, Tensor updates);
TANDEM_EXPORT Tensor tensor_scatter_nd_min(Tensor tensor, Tensor indices, Tensor updates);

/// The index tuples (int64, shape [n, rank]) of elements that are true or not zero, in row-major
/// order.
TANDEM_EXPORT Tensor where(Tensor condition);
/// The slices of `tensor` for which `mask` (bool, its shape a part of tensor's from `axis` on) is
/// true.
TANDEM_EXPORT Tensor boolean_mask(Tensor tensor, Tensor mask, std::int64_t axis = 0);

struct UniqueResult {
  Tensor y;    ///< distinct elements, in the order of their first occurrence
  Tensor idx;  ///< for each element of x, where in y it is
};
/// x: rank 1.
TANDEM_EXPORT UniqueResult unique(Tensor x, DType out_idx = int32);
struct UniqueCounts {
  Tensor y;
  Tensor idx;
  Tensor count;  ///< how often each element of y occurs
};
TANDEM_EXPORT UniqueCounts unique_with_counts(Tensor x, DType out_idx = int32);

namespace math {

struct TopK {
  Tensor values;
  Tensor indices;
};
/// The k largest entries of each last axis with their places, largest first; of equal ones the
/// first come first.
TANDEM_EXPORT TopK top_k(Tensor input, std::int64_t k = 1, bool sorted = true,
                         DType index_type = int32);
/// y with y[x[i]] = i; x is a permutation of 0 … n - 1.
TANDEM_EXPORT Tensor invert_permutation(Tensor x);

}  // namespace math
using math::top_k;

}  // namespace tandem
