#include "tandem/ops/operators.h"

#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem {

Tensor operator+(Operand x, Operand y) { return add(std::move(x), std::move(y)); }
Tensor operator-(Operand x, Operand y) { return subtract(std::move(x), std::move(y)); }
Tensor operator*(Operand x, Operand y) { return multiply(std::move(x), std::move(y)); }
Tensor operator/(Operand x, Operand y) { return divide(std::move(x), std::move(y)); }
Tensor operator-(Operand x) { return negative(std::move(x).take()); }
Tensor& operator+=(Tensor& x, Operand y) { return x = add(std::move(x), std::move(y)); }
Tensor& operator-=(Tensor& x, Operand y) { return x = subtract(std::move(x), std::move(y)); }
Tensor& operator*=(Tensor& x, Operand y) { return x = multiply(std::move(x), std::move(y)); }
Tensor& operator/=(Tensor& x, Operand y) { return x = divide(std::move(x), std::move(y)); }
Tensor operator==(Operand x, Operand y) { return equal(std::move(x), std::move(y)); }
Tensor operator!=(Operand x, Operand y) { return not_equal(std::move(x), std::move(y)); }
Tensor operator<(Operand x, Operand y) { return less(std::move(x), std::move(y)); }
Tensor operator<=(Operand x, Operand y) { return less_equal(std::move(x), std::move(y)); }
Tensor operator>(Operand x, Operand y) { return greater(std::move(x), std::move(y)); }
Tensor operator>=(Operand x, Operand y) { return greater_equal(std::move(x), std::move(y)); }
Tensor operator&&(Tensor x, Tensor y) { return logical_and(std::move(x), std::move(y)); }
Tensor operator||(Tensor x, Tensor y) { return logical_or(std::move(x), std::move(y)); }
Tensor operator!(Tensor x) { return logical_not(std::move(x)); }

}  // namespace tandem
