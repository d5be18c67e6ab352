#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem::math {

// Special functions of two values, float and double, with NumPy's broadcasting.

/// The sum of (q + k) to the power of -x over k = 0, 1, …, for x > 1.
TANDEM_EXPORT Tensor zeta(Operand x, Operand q);
/// The derivative of order `a` (0, 1, …) of digamma at x.
TANDEM_EXPORT Tensor polygamma(Operand a, Operand x);
/// The next number after x1 in the direction of x2.
TANDEM_EXPORT Tensor nextafter(Operand x1, Operand x2);

}  // namespace tandem::math
