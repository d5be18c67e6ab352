#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// real + i imag: two float tensors make complex64, two double ones complex128. Broadcasts.
TANDEM_EXPORT Tensor complex(Operand real, Operand imag);

namespace math {
/// The real part; real tensors are returned as they are.
TANDEM_EXPORT Tensor real(Tensor x);
/// The imaginary part; of real tensors zeros.
TANDEM_EXPORT Tensor imag(Tensor x);
/// The complex conjugate; real tensors are returned as they are.
TANDEM_EXPORT Tensor conj(Tensor x);
/// The argument, in (-pi, pi]; of real tensors 0 or pi.
TANDEM_EXPORT Tensor angle(Tensor x);
}  // namespace math

}  // namespace tandem
