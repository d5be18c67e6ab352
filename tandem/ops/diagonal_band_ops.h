#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::linalg {

// Several diagonals of the matrices in the last two axes at once, as rows of one matrix: the row of
// diagonal `upper` (0 is the main one, positive ones lie above it) first, that of `lower` last.
// Shorter diagonals are filled up with padding_value.

struct DiagonalBand {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t num_rows = -1;  ///< of matrices to be made; -1: as few as hold the diagonals
  std::int64_t num_cols = -1;
  double padding_value = 0;
  /// Where shorter diagonals stand in their rows, those above the main one first: "RIGHT_LEFT",
  /// "LEFT_RIGHT", "LEFT_LEFT" or "RIGHT_RIGHT".
  std::string align = "RIGHT_LEFT";
};

/// Matrices with these diagonals and padding_value elsewhere. diagonal: [..., diagonals, length],
/// or [..., length] if there is one.
TANDEM_EXPORT Tensor diag(Tensor diagonal, const DiagonalBand& band);
/// The diagonals lower … upper; one of them has no axis of its own.
TANDEM_EXPORT Tensor diag_part(Tensor input, const DiagonalBand& band);
/// The matrices with other diagonals lower … upper.
TANDEM_EXPORT Tensor set_diag(Tensor input, Tensor diagonal, const DiagonalBand& band);

}  // namespace tandem::linalg
