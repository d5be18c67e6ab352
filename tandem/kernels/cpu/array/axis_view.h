#pragma once

#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/core/error.h"
#include "tandem/core/shape.h"

namespace tandem::cpu {

/// A row-major value seen along one axis: `outer` blocks of `size` rows of `inner` elements.
struct AxisView {
  AxisView(const Shape& shape, int axis)
      : outer(shape.product(0, axis)),
        size(shape[axis]),
        inner(shape.product(axis + 1, shape.rank())) {}
  std::int64_t outer, size, inner;
};

/// The integer of a scalar that names an axis (int16, int32 or int64).
inline std::int64_t axis_value(const Array& axis) {
  switch (axis.dtype()) {
    case DType::kInt64: return *axis.data<std::int64_t>();
    case DType::kInt16: return *axis.data<std::int16_t>();
    default: return *axis.data<std::int32_t>();
  }
}

}  // namespace tandem::cpu
