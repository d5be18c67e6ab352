#pragma once

#include "tandem/core/dtype_like.h"
#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// The values in another dtype. Fractions are cut off towards zero; what does not fit an integer
/// wraps around or, from a floating value, is unspecified; complex values lose their imaginary
/// part; everything but 0 is true. The gradient flows between floating and complex dtypes. Returns
/// x itself if it has the dtype already.
TANDEM_EXPORT Tensor cast(Tensor x, DTypeLike dtype);

/// Like cast, but values that do not fit become the nearest that does.
TANDEM_EXPORT Tensor saturate_cast(Tensor x, DTypeLike dtype);

/// The dtype of `like`.
TANDEM_EXPORT Tensor cast_like(Tensor x, const Tensor& like);

}  // namespace tandem
