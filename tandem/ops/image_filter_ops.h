#pragma once

#include <utility>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

/// Differences of neighbouring pixels.
namespace tandem::image {

/// Σ |differences of neighbours|, of an image or of each image of a batch.
TANDEM_EXPORT Tensor total_variation(Tensor images);
/// Differences to the next row and to the next column, zero at the end; images [batch, height,
/// width, channels].
TANDEM_EXPORT std::pair<Tensor, Tensor> image_gradients(Tensor image);
/// Sobel's filters down and across: [batch, height, width, channels] gives [..., 2].
TANDEM_EXPORT Tensor sobel_edges(Tensor image);

}  // namespace tandem::image
