#pragma once

#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras::regularizers {

/// factor times the mean absolute cosine between different rows (or columns) of a matrix: 0 where
/// they are orthogonal.
struct TANDEM_EXPORT OrthogonalRegularizer : Regularizer {
  explicit OrthogonalRegularizer(double factor = 0.01, const String& mode = "rows");
};
using orthogonal_regularizer = OrthogonalRegularizer;

}  // namespace tandem::keras::regularizers
