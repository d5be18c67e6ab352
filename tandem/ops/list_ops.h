#pragma once

#include <cstdint>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// Lists of tensors as values: what loops collect, and keep for their gradients. A list is a
/// variant scalar. Immutable; a changed list is a new one (in the memory of the old one when
/// nothing else holds it).
namespace list_ops {

/// An empty list of elements of `dtype`.
TANDEM_EXPORT Tensor empty_tensor_list(DType dtype,
                                       const PartialShape& element_shape = PartialShape::unknown());
/// A list of `num_elements` (int32 scalar) elements that count as zeros until they are set.
TANDEM_EXPORT Tensor reserve(Tensor num_elements, DType dtype,
                             const PartialShape& element_shape = PartialShape::unknown());
TANDEM_EXPORT Tensor push_back(Tensor list, Tensor element);
/// The list without its last element, and that element. Throws InvalidArgumentError on an empty
/// list.
TANDEM_EXPORT std::pair<Tensor, Tensor> pop_back(
    Tensor list, DType dtype, const PartialShape& element_shape = PartialShape::unknown());
/// Element `index` (int32 scalar). Throws InvalidArgumentError outside of the list.
TANDEM_EXPORT Tensor get_item(Tensor list, Tensor index, DType dtype,
                              const PartialShape& element_shape = PartialShape::unknown());
/// The list with element `index` replaced.
TANDEM_EXPORT Tensor set_item(Tensor list, Tensor index, Tensor element);
/// All elements, which must be of one shape, as [length, element...].
TANDEM_EXPORT Tensor stack(Tensor list, DType dtype,
                           const PartialShape& element_shape = PartialShape::unknown());
/// The list of the tensor's rows.
TANDEM_EXPORT Tensor from_tensor(Tensor tensor);
/// How many elements; int32 scalar.
TANDEM_EXPORT Tensor length(Tensor list);

}  // namespace list_ops
}  // namespace tandem
