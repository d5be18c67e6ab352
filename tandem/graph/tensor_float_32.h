#pragma once

#include "tandem/core/export.h"

namespace tandem {

/// Whether GPUs may compute products and convolutions of floats in TensorFloat-32, whose factors
/// have ten bits after the binary point: for the whole process, as in TensorFlow. False until it is
/// set.
TANDEM_EXPORT bool tensor_float_32_enabled();
TANDEM_EXPORT void set_tensor_float_32_enabled(bool enabled);

}  // namespace tandem
