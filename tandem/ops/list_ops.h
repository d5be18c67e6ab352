#pragma once

#include <utility>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Lists of tensors as values: what loops keep for their gradients. Immutable; pushing returns a
/// new list (in the memory of the old one when nobody else holds it).
namespace list_ops {

/// An empty list of elements of `dtype`; a variant scalar.
TANDEM_EXPORT Tensor empty_tensor_list(DType dtype,
                                       const PartialShape& element_shape = PartialShape::unknown());
TANDEM_EXPORT Tensor push_back(Tensor list, Tensor element);
/// The list without its last element, and that element. Throws InvalidArgumentError on an empty
/// list.
TANDEM_EXPORT std::pair<Tensor, Tensor> pop_back(
    Tensor list, DType dtype, const PartialShape& element_shape = PartialShape::unknown());
/// How many elements; int32 scalar.
TANDEM_EXPORT Tensor length(Tensor list);

}  // namespace list_ops
}  // namespace tandem
