#pragma once

#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// A value as it is, perhaps after a look at it.

/// The same value.
TANDEM_EXPORT Tensor identity(Tensor input);
TANDEM_EXPORT std::vector<Tensor> identity_n(const std::vector<Tensor>& inputs);
/// The same value, through which no gradient flows.
TANDEM_EXPORT Tensor stop_gradient(Tensor input);
/// The same value; asking for a gradient through it throws FailedPreconditionError with `message`.
TANDEM_EXPORT Tensor prevent_gradient(Tensor input, const std::string& message = "");
/// The same value, after checking that its shape fits.
TANDEM_EXPORT Tensor ensure_shape(Tensor x, const PartialShape& shape);
/// The same floating-point value; throws InvalidArgumentError beginning with `message` if it holds
/// a NaN or infinity.
TANDEM_EXPORT Tensor check_numerics(Tensor tensor, const std::string& message);
/// The same bytes read as another dtype; a dtype of another size adds or drops a last axis.
TANDEM_EXPORT Tensor bitcast(Tensor input, DType type);

}  // namespace tandem
