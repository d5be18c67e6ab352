#pragma once

#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Arithmetic of two values, element by element, with NumPy's broadcasting. The dtypes of two
// tensors must be equal (InvalidArgumentError otherwise: use td::cast); C++ numbers take the
// tensor's. Shapes that do not broadcast give an InvalidArgumentError "Incompatible shapes". The
// operators of operators.h are these functions.

TANDEM_EXPORT Tensor add(Operand x, Operand y);
TANDEM_EXPORT Tensor subtract(Operand x, Operand y);
/// Numbers only; bool tensors have logical_and.
TANDEM_EXPORT Tensor multiply(Operand x, Operand y);
/// True division. Integers are converted first: 8- and 16-bit ones to float, wider ones to double.
TANDEM_EXPORT Tensor divide(Operand x, Operand y);
TANDEM_EXPORT Tensor truediv(Operand x, Operand y);
/// x / y in one floating or complex dtype.
TANDEM_EXPORT Tensor realdiv(Operand x, Operand y);
/// The quotient rounded towards minus infinity. An integer divided by zero is an
/// InvalidArgumentError.
TANDEM_EXPORT Tensor floordiv(Operand x, Operand y);
/// The quotient of integers rounded towards zero.
TANDEM_EXPORT Tensor truncatediv(Operand x, Operand y);
/// The remainder of floordiv, with the sign of y.
TANDEM_EXPORT Tensor floormod(Operand x, Operand y);
/// Another name of floormod (Python's %).
TANDEM_EXPORT Tensor mod(Operand x, Operand y);
/// The remainder of truncatediv, with the sign of x (C's %).
TANDEM_EXPORT Tensor truncatemod(Operand x, Operand y);
/// x to the power of y. Integers must not have negative exponents (InvalidArgumentError).
TANDEM_EXPORT Tensor pow(Operand x, Operand y);
/// The larger value; NaN if either is NaN. Where the values are equal the gradient goes to x.
TANDEM_EXPORT Tensor maximum(Operand x, Operand y);
/// The smaller value; NaN if either is NaN. Where the values are equal the gradient goes to x.
TANDEM_EXPORT Tensor minimum(Operand x, Operand y);
/// The angle of the point (x, y), in (-pi, pi].
TANDEM_EXPORT Tensor atan2(Operand y, Operand x);

/// The sum of one or more tensors of the same shape and dtype; nothing is broadcast.
TANDEM_EXPORT Tensor add_n(const std::vector<Tensor>& inputs);

namespace math {
using tandem::add;
using tandem::add_n;
using tandem::atan2;
using tandem::divide;
using tandem::floordiv;
using tandem::floormod;
using tandem::maximum;
using tandem::minimum;
using tandem::mod;
using tandem::multiply;
using tandem::pow;
using tandem::subtract;
using tandem::truediv;

/// (x - y)², of complex values times the conjugate.
TANDEM_EXPORT Tensor squared_difference(Operand x, Operand y);
/// x / y, but 0 where y is 0.
TANDEM_EXPORT Tensor divide_no_nan(Operand x, Operand y);
/// x * y, but 0 where y is 0, even if x is infinite or NaN.
TANDEM_EXPORT Tensor multiply_no_nan(Operand x, Operand y);
/// x / y, but 0 where x is 0.
TANDEM_EXPORT Tensor xdivy(Operand x, Operand y);
/// x * log(y), but 0 where x is 0.
TANDEM_EXPORT Tensor xlogy(Operand x, Operand y);
/// x * log(1 + y), but 0 where x is 0.
TANDEM_EXPORT Tensor xlog1py(Operand x, Operand y);
/// Like td::add_n, through the op AccumulateNV2; `shape` may say what the shape is.
TANDEM_EXPORT Tensor accumulate_n(const std::vector<Tensor>& inputs,
                                  const PartialShape& shape = {});
}  // namespace math

}  // namespace tandem
