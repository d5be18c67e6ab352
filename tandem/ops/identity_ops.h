#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// A value as it is, perhaps after a look at it.

/// Returns `input` unchanged.
TANDEM_EXPORT Tensor identity(Tensor input);
TANDEM_EXPORT std::vector<Tensor> identity_n(const std::vector<Tensor>& inputs);
/// Returns `input` unchanged; no gradient flows through it.
TANDEM_EXPORT Tensor stop_gradient(Tensor input);
/// Returns `input` unchanged; asking for a gradient through it throws FailedPreconditionError with
/// `message`.
TANDEM_EXPORT Tensor prevent_gradient(Tensor input, const String& message = "");
/// Returns `x` unchanged after checking that its shape fits.
TANDEM_EXPORT Tensor ensure_shape(Tensor x, const PartialShape& shape);
/// Returns a floating-point value unchanged; throws InvalidArgumentError beginning with `message`
/// if it holds a NaN or infinity.
TANDEM_EXPORT Tensor check_numerics(Tensor tensor, const String& message);
/// Reads the bytes as another dtype; a dtype of another size adds or drops a last axis.
TANDEM_EXPORT Tensor bitcast(Tensor input, DType type);

}  // namespace tandem
