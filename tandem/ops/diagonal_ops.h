#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::linalg {

// Bands and diagonals of the matrices in the last two axes.

/// Zeros outside the central band of num_lower diagonals below and num_upper above the main one; -1
/// keeps all of a side.
TANDEM_EXPORT Tensor band_part(Tensor input, std::int64_t num_lower, std::int64_t num_upper);
/// Square matrices with the last axis on their main diagonals and zeros elsewhere.
TANDEM_EXPORT Tensor diag(Tensor diagonal);
/// The main diagonals.
TANDEM_EXPORT Tensor diag_part(Tensor input);
/// The matrices with other main diagonals.
TANDEM_EXPORT Tensor set_diag(Tensor input, Tensor diagonal);

}  // namespace tandem::linalg
