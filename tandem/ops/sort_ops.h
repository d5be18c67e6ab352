#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

/// The values of each row along `axis` in order, "ASCENDING" or "DESCENDING". Numbers; NaN is
/// nowhere in particular. Throws InvalidArgumentError for another direction or an axis out of
/// range. The gradient goes to where each value came from.
TANDEM_EXPORT Tensor sort(const Tensor& values, std::int64_t axis = -1,
                          StringView direction = "ASCENDING");

/// The indices, int32, that td::gather sorts with; among equal values the earlier comes first.
TANDEM_EXPORT Tensor argsort(const Tensor& values, std::int64_t axis = -1,
                             StringView direction = "ASCENDING", bool stable = false);

}  // namespace tandem
