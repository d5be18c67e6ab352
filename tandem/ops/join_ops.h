#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Several tensors as one, and one as several. All dtypes.
// Axes may be negative and count from the end; one out of range throws InvalidArgumentError.

/// One after the other along an existing axis; all other sizes must agree.
TANDEM_EXPORT Tensor concat(const std::vector<Tensor>& values, std::int64_t axis);
/// Side by side along a new axis; all shapes must agree.
TANDEM_EXPORT Tensor stack(const std::vector<Tensor>& values, std::int64_t axis = 0);
/// The slices along an axis, without it. `num` is needed only if the size is unknown while tracing.
TANDEM_EXPORT std::vector<Tensor> unstack(Tensor value, std::optional<std::int64_t> num = {},
                                          std::int64_t axis = 0);

}  // namespace tandem
