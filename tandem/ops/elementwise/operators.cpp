#include "tandem/ops/operators.h"

#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/bitwise_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem {
namespace {

bool is_bool(const Operand& x) { return x.dtype() == DType::kBool; }

}  // namespace

Tensor operator+(Operand x, Operand y) { return add(std::move(x), std::move(y)); }
Tensor operator-(Operand x, Operand y) { return subtract(std::move(x), std::move(y)); }
Tensor operator*(Operand x, Operand y) { return multiply(std::move(x), std::move(y)); }
Tensor operator/(Operand x, Operand y) { return divide(std::move(x), std::move(y)); }
Tensor operator%(Operand x, Operand y) { return floormod(std::move(x), std::move(y)); }
Tensor operator-(Operand x) { return negative(std::move(x).take()); }

// x is not moved in: it must keep its value if the op fails.
Tensor& operator+=(Tensor& x, Operand y) { return x = add(x, std::move(y)); }
Tensor& operator-=(Tensor& x, Operand y) { return x = subtract(x, std::move(y)); }
Tensor& operator*=(Tensor& x, Operand y) { return x = multiply(x, std::move(y)); }
Tensor& operator/=(Tensor& x, Operand y) { return x = divide(x, std::move(y)); }

Tensor operator==(Operand x, Operand y) { return equal(std::move(x), std::move(y)); }
Tensor operator!=(Operand x, Operand y) { return not_equal(std::move(x), std::move(y)); }
Tensor operator<(Operand x, Operand y) { return less(std::move(x), std::move(y)); }
Tensor operator<=(Operand x, Operand y) { return less_equal(std::move(x), std::move(y)); }
Tensor operator>(Operand x, Operand y) { return greater(std::move(x), std::move(y)); }
Tensor operator>=(Operand x, Operand y) { return greater_equal(std::move(x), std::move(y)); }

Tensor operator&&(Tensor x, Tensor y) { return logical_and(std::move(x), std::move(y)); }
Tensor operator||(Tensor x, Tensor y) { return logical_or(std::move(x), std::move(y)); }
Tensor operator!(Tensor x) { return logical_not(std::move(x)); }

Tensor operator&(Operand x, Operand y) {
  return is_bool(x) ? logical_and(std::move(x), std::move(y))
                    : bitwise::bitwise_and(std::move(x), std::move(y));
}
Tensor operator|(Operand x, Operand y) {
  return is_bool(x) ? logical_or(std::move(x), std::move(y))
                    : bitwise::bitwise_or(std::move(x), std::move(y));
}
Tensor operator^(Operand x, Operand y) {
  return is_bool(x) ? not_equal(std::move(x), std::move(y))
                    : bitwise::bitwise_xor(std::move(x), std::move(y));
}
Tensor operator~(Operand x) {
  return is_bool(x) ? logical_not(std::move(x)) : bitwise::invert(std::move(x).take());
}

}  // namespace tandem
