#pragma once

#include <cstdint>
#include <optional>

#include "tandem/core/attr.h"

namespace tandem::internal {

/// The attributes seed and seed2 of the next stateful random op, called now with this seed of its
/// own or none. In a function that a dataset calls, or traces, seeds of the stage take the place of
/// the runtime's, and no two calls have the same.
AttrMap op_seeds(std::optional<std::int64_t> seed);

}  // namespace tandem::internal
