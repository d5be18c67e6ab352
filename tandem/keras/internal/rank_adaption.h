#pragma once

#include "tandem/core/shape.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// Keras' adaption of a model's input: an axis of size 1 at the end is added where `wanted` has one
/// more, [batch, 28, 28] for [None, 28, 28, 1], and taken away where it has one less.
Tensor adapt_rank(const Tensor& x, const PartialShape& wanted);

}  // namespace tandem::keras::internal
