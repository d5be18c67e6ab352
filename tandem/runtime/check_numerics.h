#pragma once

#include "tandem/core/export.h"

namespace tandem::debugging {

/// From now on the first op whose result has a NaN or an infinity throws InvalidArgumentError,
/// which names the op: eager calls at once, functions that are traced from now on when they run (so
/// call this before they are traced). Every op's floating-point results are read for it, which
/// takes time. For the whole process; thread-safe.
///
/// `stack_height_limit` and `path_length_limit` are TensorFlow's, for Python's tracebacks, and have
/// no effect.
TANDEM_EXPORT void enable_check_numerics(int stack_height_limit = 30, int path_length_limit = 50);
TANDEM_EXPORT void disable_check_numerics();

}  // namespace tandem::debugging

namespace tandem::internal {

/// Whether results are checked.
TANDEM_EXPORT bool checks_numerics() noexcept;

}  // namespace tandem::internal
