#pragma once

#include <string_view>

#include "tandem/runtime/tensor.h"

// The shapes that functions on images take.

namespace tandem::internal {

/// True for [batch, height, width, channels], false for [height, width, channels]; throws
/// InvalidArgumentError, naming the function, for anything else.
bool is_batch(const Tensor& images, std::string_view function);
void require_batch(const Tensor& images, std::string_view function);

}  // namespace tandem::internal
