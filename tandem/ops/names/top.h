#pragma once

// Names that TensorFlow has at the top and that are declared in a namespace here, and those of its
// older names that are still at the top: see tandem/ops/names/math.h.

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/dtype_like.h"
#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/debugging_ops.h"
#include "tandem/ops/histogram_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/linalg_functions.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/special_ops.h"
#include "tandem/ops/string_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem {

using debugging::Assert;
using debugging::assert_equal;
using debugging::assert_greater;
using debugging::assert_less;
using debugging::assert_rank;
using linalg::eig;
using linalg::eigvals;
using strings::as_string;

using TensorShape = Shape;

/// linalg::sqrtm.
inline Tensor matrix_square_root(Tensor input) { return linalg::sqrtm(std::move(input)); }
/// stack along the first axis.
inline Tensor parallel_stack(const std::vector<Tensor>& values) { return stack(values); }
/// space_to_batch_nd and batch_to_space_nd.
inline Tensor space_to_batch(Tensor input, const IntList& block_shape, Tensor paddings) {
  return space_to_batch_nd(std::move(input), block_shape, std::move(paddings));
}
inline Tensor batch_to_space(Tensor input, const IntList& block_shape, Tensor crops) {
  return batch_to_space_nd(std::move(input), block_shape, std::move(crops));
}
inline bool is_tensor(const Tensor& x) { return x.defined(); }
inline bool is_symbolic_tensor(const Tensor& x) { return x.is_symbolic(); }
/// "float32", "int64" and the like; throws InvalidArgumentError for an unknown name.
inline DType as_dtype(DTypeLike dtype) { return dtype; }

}  // namespace tandem
