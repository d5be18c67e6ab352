#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem::math {

// Special functions, element by element: half, bfloat16, float and double; those of several values
// float and double.

// Modified Bessel functions of the first kind; with e times exp(-|x|), which does not overflow.
TANDEM_EXPORT Tensor bessel_i0(Tensor x);
TANDEM_EXPORT Tensor bessel_i0e(Tensor x);
TANDEM_EXPORT Tensor bessel_i1(Tensor x);
TANDEM_EXPORT Tensor bessel_i1e(Tensor x);

/// The regularised lower incomplete gamma function of a > 0 and x >= 0, broadcast; and the upper.
TANDEM_EXPORT Tensor igamma(Operand a, Operand x);
TANDEM_EXPORT Tensor igammac(Operand a, Operand x);
/// The regularised incomplete beta integral of a, b > 0 up to x in [0, 1]; equal shapes or scalars.
/// Only x has a gradient.
TANDEM_EXPORT Tensor betainc(Tensor a, Tensor b, Tensor x);

namespace special {

using math::bessel_i0;
using math::bessel_i0e;
using math::bessel_i1;
using math::bessel_i1e;
// Bessel functions of the first and second kind, and modified ones of the second kind; those with
// an e are multiplied by exp(x).
TANDEM_EXPORT Tensor bessel_j0(Tensor x);
TANDEM_EXPORT Tensor bessel_j1(Tensor x);
TANDEM_EXPORT Tensor bessel_y0(Tensor x);
TANDEM_EXPORT Tensor bessel_y1(Tensor x);
TANDEM_EXPORT Tensor bessel_k0(Tensor x);
TANDEM_EXPORT Tensor bessel_k0e(Tensor x);
TANDEM_EXPORT Tensor bessel_k1(Tensor x);
TANDEM_EXPORT Tensor bessel_k1e(Tensor x);
/// exp(-x²) times the integral of exp(t²) from 0 to x.
TANDEM_EXPORT Tensor dawsn(Tensor x);
/// The principal value of the integral of exp(t) / t up to x > 0.
TANDEM_EXPORT Tensor expint(Tensor x);
/// The integrals of cos(pi t² / 2) and sin(pi t² / 2) from 0 to x.
TANDEM_EXPORT Tensor fresnel_cos(Tensor x);
TANDEM_EXPORT Tensor fresnel_sin(Tensor x);
/// The integral of log(t) / (1 - t) from 1 to x.
TANDEM_EXPORT Tensor spence(Tensor x);

}  // namespace special
}  // namespace tandem::math

namespace tandem::bitwise {

/// The number of bits that are set, as uint8.
TANDEM_EXPORT Tensor population_count(Tensor x);

}  // namespace tandem::bitwise
