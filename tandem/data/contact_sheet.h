#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::data {

/// A picture of grey images in rows of `columns`, each with what a model made of it below: the
/// predicted number in green if it is the label, else "predicted/label" in red.
///
/// `images` is float [n,height,width] or [n,height,width,1] with values 0 (black) to 1, `labels`
/// and `predictions` are int32 or int64 [n]. The result is uint8 [height,width,3], for write_png.
/// Throws InvalidArgumentError if the tensors do not fit together or there is no image.
TANDEM_EXPORT Tensor render_digits(const Tensor& images, const Tensor& labels,
                                   const Tensor& predictions, std::int64_t columns);

}  // namespace tandem::data
