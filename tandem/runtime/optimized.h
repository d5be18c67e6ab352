#pragma once

#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/graph/function.h"
#include "tandem/graph/passes.h"

namespace tandem {

/// What runs in place of `function` when it is called with arguments of these shapes (which may be
/// known in part) under the options in force: to look at, and for tests.
TANDEM_EXPORT MutableFunction optimized(const Function& function,
                                        const std::vector<PartialShape>& arg_shapes);

}  // namespace tandem
