#pragma once

#include <string>

#include "tandem/core/shape.h"

namespace tandem::keras::internal {

/// "(None, 28, 28)", as Keras prints shapes.
std::string shape_text(const PartialShape& shape);

}  // namespace tandem::keras::internal
