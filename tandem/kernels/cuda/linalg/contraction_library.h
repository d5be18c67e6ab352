#pragma once

#include "tandem/kernels/cuda/support/kernel_call.h"
#include "tandem/kernels/shared/contraction.h"

namespace tandem::cuda {

/// Operands of an Einstein sum of two. Labels of the result are distinct.
struct ContractionOperand {
  const void* data = nullptr;
  contraction::Axes axes;
};

/// Has cuBLASLt compute an Einstein sum: as a product of batches of matrices, after operands have
/// been copied into such an order where they are in another, and before the result is. False, and
/// nothing is done, where the sum is no such product, the library does not serve, or the product is
/// too small for copies to be worth it.
bool contract_by_library(const KernelCall& call, Type type, const ContractionOperand& a,
                         const ContractionOperand& b, void* y, const contraction::Axes& y_axes);

}  // namespace tandem::cuda
