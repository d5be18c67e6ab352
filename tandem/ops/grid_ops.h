#pragma once

#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Coordinates: grids of them, masks by length, and places in flattened tensors.

/// For vectors of n0, n1, … elements as many tensors of rank as many: the i-th holds the i-th
/// coordinate of each point. indexing "xy": shape [n1, n0, …]; "ij": [n0, n1, …].
TANDEM_EXPORT std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors,
                                           StringView indexing = "xy");

/// [..., maxlen]: true in the first `lengths` places. maxlen: the longest by default.
TANDEM_EXPORT Tensor sequence_mask(const Tensor& lengths, const Tensor& maxlen = {},
                                   DType dtype = boolean);

/// The coordinates [rank, n] of the places `indices` [n] in a flattened tensor of shape `dims`.
TANDEM_EXPORT Tensor unravel_index(Tensor indices, Tensor dims);

namespace math {
/// How often each class was predicted for each: rows are labels, columns predictions. `weights`, if
/// given, are added up instead of ones. Throws InvalidArgumentError for negative classes, and for
/// ones from num_classes on.
TANDEM_EXPORT Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions,
                                      const Tensor& num_classes = {}, const Tensor& weights = {},
                                      DType dtype = int32);
}  // namespace math

}  // namespace tandem
