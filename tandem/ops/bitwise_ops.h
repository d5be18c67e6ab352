#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem::bitwise {

// Bits of integers, element by element with NumPy's broadcasting.

TANDEM_EXPORT Tensor bitwise_and(Operand x, Operand y);
TANDEM_EXPORT Tensor bitwise_or(Operand x, Operand y);
TANDEM_EXPORT Tensor bitwise_xor(Operand x, Operand y);
TANDEM_EXPORT Tensor invert(Tensor x);
/// Shifts by less than 0 count as 0, by the number of bits or more as one less.
TANDEM_EXPORT Tensor left_shift(Operand x, Operand y);
/// Keeps the sign of signed integers.
TANDEM_EXPORT Tensor right_shift(Operand x, Operand y);

}  // namespace tandem::bitwise
