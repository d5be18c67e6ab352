#pragma once

#include <cstdint>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Shapes as values, and values under other shapes.
// Axes may be negative and count from the end; one out of range throws InvalidArgumentError.

/// The shape as an int32 or int64 vector.
TANDEM_EXPORT Tensor shape(Tensor input, DType out_type = int32);
TANDEM_EXPORT std::vector<Tensor> shape_n(const std::vector<Tensor>& inputs,
                                          DType out_type = int32);
/// The number of elements.
TANDEM_EXPORT Tensor size(Tensor input, DType out_type = int32);
TANDEM_EXPORT Tensor rank(Tensor input);

/// The elements in row-major order under another shape, sharing memory; one size may be -1 and
/// follows from the rest.
TANDEM_EXPORT Tensor reshape(Tensor tensor, const IntList& shape);
/// A new axis of size 1 at `axis`, in [-rank - 1, rank].
TANDEM_EXPORT Tensor expand_dims(Tensor input, std::int64_t axis);
/// Without these axes, which must have size 1; without all axes of size 1 if none is named.
TANDEM_EXPORT Tensor squeeze(Tensor input, std::vector<std::int64_t> axis = {});
/// The shape that two shapes (int32 or int64 vectors) broadcast to.
TANDEM_EXPORT Tensor broadcast_dynamic_shape(Tensor shape_x, Tensor shape_y);
TANDEM_EXPORT Shape broadcast_static_shape(const Shape& shape_x, const Shape& shape_y);

}  // namespace tandem
