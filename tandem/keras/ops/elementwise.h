#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/keras/activations.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

/// keras.ops: NumPy's functions and those of networks, with NumPy's promotion of dtypes: an integer
/// and a float give a float, functions of floats take integers as float32, of two floats the wider
/// is the result's.
namespace tandem::keras::ops {

// ---- Of one value, element by element. ----

#define TANDEM_KERAS_UNARY(NAME) TANDEM_EXPORT Tensor NAME(const Tensor& x);
TANDEM_KERAS_UNARY(abs)
TANDEM_KERAS_UNARY(absolute)
TANDEM_KERAS_UNARY(fabs)
TANDEM_KERAS_UNARY(arccos)
TANDEM_KERAS_UNARY(arccosh)
TANDEM_KERAS_UNARY(arcsin)
TANDEM_KERAS_UNARY(arcsinh)
TANDEM_KERAS_UNARY(arctan)
TANDEM_KERAS_UNARY(arctanh)
TANDEM_KERAS_UNARY(bitwise_invert)
TANDEM_KERAS_UNARY(bitwise_not)
TANDEM_KERAS_UNARY(cbrt)
TANDEM_KERAS_UNARY(ceil)
TANDEM_KERAS_UNARY(conj)
TANDEM_KERAS_UNARY(conjugate)
TANDEM_KERAS_UNARY(cos)
TANDEM_KERAS_UNARY(cosh)
TANDEM_KERAS_UNARY(deg2rad)
TANDEM_KERAS_UNARY(rad2deg)
TANDEM_KERAS_UNARY(erf)
TANDEM_KERAS_UNARY(erfc)
TANDEM_KERAS_UNARY(erfinv)
TANDEM_KERAS_UNARY(exp)
TANDEM_KERAS_UNARY(exp2)
TANDEM_KERAS_UNARY(expm1)
TANDEM_KERAS_UNARY(floor)
TANDEM_KERAS_UNARY(i0)
TANDEM_KERAS_UNARY(imag)
TANDEM_KERAS_UNARY(isfinite)
TANDEM_KERAS_UNARY(isinf)
TANDEM_KERAS_UNARY(isnan)
TANDEM_KERAS_UNARY(isneginf)
TANDEM_KERAS_UNARY(isposinf)
TANDEM_KERAS_UNARY(isreal)
TANDEM_KERAS_UNARY(log)
TANDEM_KERAS_UNARY(log10)
TANDEM_KERAS_UNARY(log1p)
TANDEM_KERAS_UNARY(log2)
TANDEM_KERAS_UNARY(logical_not)
TANDEM_KERAS_UNARY(negative)
TANDEM_KERAS_UNARY(real)
TANDEM_KERAS_UNARY(reciprocal)
TANDEM_KERAS_UNARY(rsqrt)
TANDEM_KERAS_UNARY(sign)
TANDEM_KERAS_UNARY(signbit)
TANDEM_KERAS_UNARY(sin)
TANDEM_KERAS_UNARY(sinc)
TANDEM_KERAS_UNARY(sinh)
TANDEM_KERAS_UNARY(sqrt)
TANDEM_KERAS_UNARY(square)
TANDEM_KERAS_UNARY(tan)
TANDEM_KERAS_UNARY(tanh)
TANDEM_KERAS_UNARY(trunc)
// Activations.
TANDEM_KERAS_UNARY(hard_swish)
TANDEM_KERAS_UNARY(log_sigmoid)
TANDEM_KERAS_UNARY(relu)
TANDEM_KERAS_UNARY(relu6)
TANDEM_KERAS_UNARY(selu)
TANDEM_KERAS_UNARY(sigmoid)
TANDEM_KERAS_UNARY(silu)
TANDEM_KERAS_UNARY(softplus)
TANDEM_KERAS_UNARY(softsign)
TANDEM_KERAS_UNARY(swish)
#undef TANDEM_KERAS_UNARY

using activations::celu;
using activations::elu;
using activations::glu;
using activations::hard_shrink;
using activations::hard_sigmoid;
using activations::hard_silu;
using activations::hard_tanh;
using activations::leaky_relu;
using activations::soft_shrink;
using activations::sparse_plus;
using activations::sparse_sigmoid;
using activations::sparsemax;
using activations::squareplus;
using activations::tanh_shrink;
using activations::threshold;
TANDEM_EXPORT Tensor gelu(const Tensor& x, bool approximate = true);
TANDEM_EXPORT Tensor softmax(const Tensor& x, std::int64_t axis = -1);
TANDEM_EXPORT Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);

/// The angle of complex values.
TANDEM_EXPORT Tensor angle(const Tensor& x);
TANDEM_EXPORT Tensor round(const Tensor& x, int decimals = 0);
TANDEM_EXPORT Tensor clip(const Tensor& x, Operand x_min, Operand x_max);
TANDEM_EXPORT Tensor nan_to_num(const Tensor& x, double nan = 0, std::optional<double> posinf = {},
                                std::optional<double> neginf = {});
TANDEM_EXPORT Tensor cast(const Tensor& x, DType dtype);
TANDEM_EXPORT Tensor saturate_cast(const Tensor& x, DType dtype);

// ---- Of two values, broadcast. ----

#define TANDEM_KERAS_BINARY(NAME) TANDEM_EXPORT Tensor NAME(Operand x1, Operand x2);
TANDEM_KERAS_BINARY(add)
TANDEM_KERAS_BINARY(subtract)
TANDEM_KERAS_BINARY(multiply)
TANDEM_KERAS_BINARY(divide)
TANDEM_KERAS_BINARY(true_divide)
TANDEM_KERAS_BINARY(divide_no_nan)
TANDEM_KERAS_BINARY(floor_divide)
TANDEM_KERAS_BINARY(mod)
TANDEM_KERAS_BINARY(fmod)
TANDEM_KERAS_BINARY(power)
TANDEM_KERAS_BINARY(maximum)
TANDEM_KERAS_BINARY(minimum)
TANDEM_KERAS_BINARY(fmax)
TANDEM_KERAS_BINARY(fmin)
TANDEM_KERAS_BINARY(arctan2)
TANDEM_KERAS_BINARY(hypot)
TANDEM_KERAS_BINARY(heaviside)
TANDEM_KERAS_BINARY(logaddexp)
TANDEM_KERAS_BINARY(logaddexp2)
TANDEM_KERAS_BINARY(nextafter)
TANDEM_KERAS_BINARY(ldexp)
TANDEM_KERAS_BINARY(gcd)
TANDEM_KERAS_BINARY(lcm)
TANDEM_KERAS_BINARY(equal)
TANDEM_KERAS_BINARY(not_equal)
TANDEM_KERAS_BINARY(less)
TANDEM_KERAS_BINARY(less_equal)
TANDEM_KERAS_BINARY(greater)
TANDEM_KERAS_BINARY(greater_equal)
TANDEM_KERAS_BINARY(logical_and)
TANDEM_KERAS_BINARY(logical_or)
TANDEM_KERAS_BINARY(logical_xor)
TANDEM_KERAS_BINARY(bitwise_and)
TANDEM_KERAS_BINARY(bitwise_or)
TANDEM_KERAS_BINARY(bitwise_xor)
TANDEM_KERAS_BINARY(bitwise_left_shift)
TANDEM_KERAS_BINARY(bitwise_right_shift)
TANDEM_KERAS_BINARY(left_shift)
TANDEM_KERAS_BINARY(right_shift)
#undef TANDEM_KERAS_BINARY
TANDEM_EXPORT Tensor isclose(Operand x1, Operand x2, double rtol = 1e-5, double atol = 1e-8,
                             bool equal_nan = false);
/// A bool scalar.
TANDEM_EXPORT Tensor allclose(Operand x1, Operand x2, double rtol = 1e-5, double atol = 1e-8,
                              bool equal_nan = false);
/// x1 where the condition holds, else x2.
TANDEM_EXPORT Tensor where(const Tensor& condition, Operand x1, Operand x2);
/// Where the condition holds, one vector of indices for each axis.
TANDEM_EXPORT std::vector<Tensor> where(const Tensor& condition);
/// The choice of the first condition that holds, else default_value.
TANDEM_EXPORT Tensor select(const std::vector<Tensor>& conditions,
                            const std::vector<Tensor>& choices, Operand default_value = 0);

}  // namespace tandem::keras::ops
