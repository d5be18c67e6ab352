#pragma once

#include <utility>

#include "tandem/core/dtype.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::internal {

/// The dtype that two tensors have together in Keras.
DType promoted(DType a, DType b);

/// Both as tensors of that dtype. A C++ number is as weak as Python's: a fraction makes integers
/// float32 and leaves floats as they are.
OperandPair promote(Operand x, Operand y);

/// Integers and bools as float32, others as they are.
Tensor in_float(const Tensor& x);

}  // namespace tandem::keras::internal
