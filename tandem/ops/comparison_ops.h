#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Comparison and logic, element by element with NumPy's broadcasting, into bool tensors; and choice
// by them.

/// Any dtype, strings too. NaN differs from everything.
TANDEM_EXPORT Tensor equal(Operand x, Operand y);
TANDEM_EXPORT Tensor not_equal(Operand x, Operand y);
TANDEM_EXPORT Tensor less(Operand x, Operand y);
TANDEM_EXPORT Tensor less_equal(Operand x, Operand y);
TANDEM_EXPORT Tensor greater(Operand x, Operand y);
TANDEM_EXPORT Tensor greater_equal(Operand x, Operand y);

// Logical functions of bool tensors; other dtypes are an InvalidArgumentError.
TANDEM_EXPORT Tensor logical_and(Operand x, Operand y);
TANDEM_EXPORT Tensor logical_or(Operand x, Operand y);
TANDEM_EXPORT Tensor logical_not(Operand x);

/// x where `condition` holds, else y; all three broadcast together. The gradient flows through what
/// was chosen only.
TANDEM_EXPORT Tensor where(Tensor condition, Operand x, Operand y);

/// One answer about two whole concrete tensors: the same dtype, shape and elements (NaN differs
/// from itself). Reads the values, so while tracing it throws FailedPreconditionError.
TANDEM_EXPORT bool all_equal(const Operand& x, const Operand& y);

namespace math {
using tandem::equal;
using tandem::greater;
using tandem::greater_equal;
using tandem::less;
using tandem::less_equal;
using tandem::logical_and;
using tandem::logical_not;
using tandem::logical_or;
using tandem::not_equal;

/// (x || y) && !(x && y).
TANDEM_EXPORT Tensor logical_xor(Operand x, Operand y);
/// |x - y| < tolerance; the shapes must be equal.
TANDEM_EXPORT Tensor approximate_equal(Operand x, Operand y, float tolerance = 1e-5f);
}  // namespace math

}  // namespace tandem
