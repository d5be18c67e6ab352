#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/operand.h"

namespace tandem {

// Operators of tensors, variables and C++ numbers. All are elementwise, broadcast as NumPy does,
// and are found wherever one side is a Tensor or a Variable. Numbers take the tensor's dtype (see
// Operand).

TANDEM_EXPORT Tensor operator+(Operand x, Operand y);  ///< td::add
TANDEM_EXPORT Tensor operator-(Operand x, Operand y);  ///< td::subtract
TANDEM_EXPORT Tensor operator*(Operand x, Operand y);  ///< td::multiply
TANDEM_EXPORT Tensor operator/(Operand x,
                               Operand y);  ///< td::divide: integers give a floating result
TANDEM_EXPORT Tensor operator%(Operand x,
                               Operand y);  ///< td::floormod: the result has the sign of y
TANDEM_EXPORT Tensor operator-(Operand x);  ///< td::negative

// `x += y` is `x = x + y`: other tensors that share x's value keep it.
TANDEM_EXPORT Tensor& operator+=(Tensor& x, Operand y);
TANDEM_EXPORT Tensor& operator-=(Tensor& x, Operand y);
TANDEM_EXPORT Tensor& operator*=(Tensor& x, Operand y);
TANDEM_EXPORT Tensor& operator/=(Tensor& x, Operand y);

// Comparisons give a bool tensor; for one answer about two whole tensors see td::all_equal.
TANDEM_EXPORT Tensor operator==(Operand x, Operand y);
TANDEM_EXPORT Tensor operator!=(Operand x, Operand y);
TANDEM_EXPORT Tensor operator<(Operand x, Operand y);
TANDEM_EXPORT Tensor operator<=(Operand x, Operand y);
TANDEM_EXPORT Tensor operator>(Operand x, Operand y);
TANDEM_EXPORT Tensor operator>=(Operand x, Operand y);

// Logic of bool tensors. Both sides are always evaluated; a C++ bool on one side is ambiguous on
// purpose: write `flag && bool(t)` for one answer, td::logical_and for a tensor.
TANDEM_EXPORT Tensor operator&&(Tensor x, Tensor y);
TANDEM_EXPORT Tensor operator||(Tensor x, Tensor y);
TANDEM_EXPORT Tensor operator!(Tensor x);

// Bits of integer tensors; of bool tensors the logic.
TANDEM_EXPORT Tensor operator&(Operand x, Operand y);
TANDEM_EXPORT Tensor operator|(Operand x, Operand y);
TANDEM_EXPORT Tensor operator^(Operand x, Operand y);
TANDEM_EXPORT Tensor operator~(Operand x);

}  // namespace tandem
