#pragma once

#include <cstdint>
#include <optional>

#include "tandem/core/export.h"
#include "tandem/ops/sparse_ops.h"
#include "tandem/runtime/tensor.h"

/// Sparse tensors as strings, in TensorFlow's form: each is a row of three serialized TensorProtos,
/// indices, values and shape. For concrete tensors, not in traced functions.
namespace tandem::io {

/// A vector of three strings.
TANDEM_EXPORT Tensor serialize_sparse(const sparse::SparseTensor& x);
/// The entries along the first axis, which must be in order, one row of three strings each: [n, 3].
/// Throws InvalidArgumentError for rank 0 and 1.
TANDEM_EXPORT Tensor serialize_many_sparse(const sparse::SparseTensor& x);
/// The reverse: rows of three strings become a sparse tensor with an axis more, as large in the
/// others as the largest. `rank` is that of each; it need be given for no rows only. Throws
/// InvalidArgumentError for strings that hold something else.
TANDEM_EXPORT sparse::SparseTensor deserialize_many_sparse(
    const Tensor& serialized_sparse, DType dtype, std::optional<std::int64_t> rank = std::nullopt);

}  // namespace tandem::io
