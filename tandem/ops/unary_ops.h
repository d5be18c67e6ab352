#pragma once

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Functions of one value, element by element; the result has the argument's shape and, unless said
// otherwise, dtype. Integer arguments to functions of floating or complex values are an
// InvalidArgumentError: use td::cast.

/// The absolute value; of complex values the magnitude, as a real tensor.
TANDEM_EXPORT Tensor abs(Tensor x);
TANDEM_EXPORT Tensor negative(Tensor x);
/// -1, 0 or 1; of complex values x / |x|; NaN of NaN.
TANDEM_EXPORT Tensor sign(Tensor x);
TANDEM_EXPORT Tensor square(Tensor x);
TANDEM_EXPORT Tensor sqrt(Tensor x);
TANDEM_EXPORT Tensor exp(Tensor x);
TANDEM_EXPORT Tensor sin(Tensor x);
TANDEM_EXPORT Tensor cos(Tensor x);
TANDEM_EXPORT Tensor tan(Tensor x);
TANDEM_EXPORT Tensor asin(Tensor x);
TANDEM_EXPORT Tensor acos(Tensor x);
TANDEM_EXPORT Tensor atan(Tensor x);
TANDEM_EXPORT Tensor sinh(Tensor x);
TANDEM_EXPORT Tensor cosh(Tensor x);
TANDEM_EXPORT Tensor tanh(Tensor x);
TANDEM_EXPORT Tensor asinh(Tensor x);
TANDEM_EXPORT Tensor acosh(Tensor x);
TANDEM_EXPORT Tensor atanh(Tensor x);
/// 1 / (1 + exp(-x)).
TANDEM_EXPORT Tensor sigmoid(Tensor x);
/// Towards minus infinity.
TANDEM_EXPORT Tensor floor(Tensor x);
/// To the nearest integer; halves to the even one. Integers are returned as they are.
TANDEM_EXPORT Tensor round(Tensor x);

namespace math {
using tandem::abs;
using tandem::acos;
using tandem::acosh;
using tandem::asin;
using tandem::asinh;
using tandem::atan;
using tandem::atanh;
using tandem::cos;
using tandem::cosh;
using tandem::exp;
using tandem::floor;
using tandem::negative;
using tandem::round;
using tandem::sigmoid;
using tandem::sign;
using tandem::sin;
using tandem::sinh;
using tandem::sqrt;
using tandem::square;
using tandem::tan;
using tandem::tanh;

TANDEM_EXPORT Tensor log(Tensor x);
/// log(1 + x), accurate near 0.
TANDEM_EXPORT Tensor log1p(Tensor x);
/// exp(x) - 1, accurate near 0.
TANDEM_EXPORT Tensor expm1(Tensor x);
/// log(sigmoid(x)), without overflow.
TANDEM_EXPORT Tensor log_sigmoid(Tensor x);
/// 1 / sqrt(x).
TANDEM_EXPORT Tensor rsqrt(Tensor x);
/// 1 / x.
TANDEM_EXPORT Tensor reciprocal(Tensor x);
/// Like reciprocal, but 0 where x is 0.
TANDEM_EXPORT Tensor reciprocal_no_nan(Tensor x);
/// Towards plus infinity.
TANDEM_EXPORT Tensor ceil(Tensor x);
/// The nearest integer, halves to the even one.
TANDEM_EXPORT Tensor rint(Tensor x);
TANDEM_EXPORT Tensor erf(Tensor x);
/// 1 - erf(x), accurate for large x.
TANDEM_EXPORT Tensor erfc(Tensor x);
/// The inverse of erf, for x in (-1, 1).
TANDEM_EXPORT Tensor erfinv(Tensor x);
/// The inverse of erfc, for x in (0, 2).
TANDEM_EXPORT Tensor erfcinv(Tensor x);
/// The quantile of the standard normal distribution, for x in (0, 1).
TANDEM_EXPORT Tensor ndtri(Tensor x);
/// log |Gamma(x)|.
TANDEM_EXPORT Tensor lgamma(Tensor x);
/// The derivative of lgamma.
TANDEM_EXPORT Tensor digamma(Tensor x);
// These give bool tensors.
TANDEM_EXPORT Tensor is_nan(Tensor x);
TANDEM_EXPORT Tensor is_inf(Tensor x);
TANDEM_EXPORT Tensor is_finite(Tensor x);
}  // namespace math

}  // namespace tandem
