#pragma once

#include "tandem/core/export.h"

namespace tandem::config::experimental {

/// Lets GPUs compute products and convolutions of floats in TensorFloat-32: several times faster,
/// with a relative error near 1e-3 instead of 1e-7. For the whole process, at once. Unlike
/// TensorFlow's it is off until a program enables it. Other devices compute in float.
TANDEM_EXPORT void enable_tensor_float_32_execution(bool enabled);
TANDEM_EXPORT bool tensor_float_32_execution_enabled();

}  // namespace tandem::config::experimental

namespace tandem::config {

using experimental::enable_tensor_float_32_execution;
using experimental::tensor_float_32_execution_enabled;

}  // namespace tandem::config
