#pragma once

#include "tandem/core/dtype.h"
#include "tandem/runtime/tensor.h"

// What gradients of reductions need of shapes. Static where shapes and axes are known, else
// computed by ops.

namespace tandem::internal {

/// A reduction's result over `axes` of x with those axes back, of size 1.
Tensor reshape_as_reduced(Tensor result, const Tensor& x, const Tensor& axes);

/// `value` repeated to x's shape.
Tensor broadcast_like(Tensor value, const Tensor& x);

/// How many elements of x make one of `result`, as a scalar.
Tensor reduced_count(const Tensor& x, const Tensor& result, DType dtype);

/// For each element of x the product of all others that a product over `axes` multiplies it with.
Tensor product_of_others(const Tensor& x, const Tensor& axes);

}  // namespace tandem::internal
