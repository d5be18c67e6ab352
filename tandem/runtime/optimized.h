#pragma once

#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/graph/function.h"
#include "tandem/graph/passes.h"
#include "tandem/placement/placement.h"

namespace tandem {

/// What runs in place of `function` when it is called with arguments of these shapes (which may be
/// known in part) under the options in force: to look at, and for tests.
TANDEM_EXPORT MutableFunction optimized(const Function& function,
                                        const std::vector<PartialShape>& arg_shapes);

/// In two steps, where there are several devices: first what is done before nodes are
/// placed, then, for `function` placed so, the fused ops for which the devices have kernels. New
/// nodes are placed where the ones are that they stand for.
TANDEM_EXPORT MutableFunction simplified(const Function& function,
                                         const std::vector<PartialShape>& arg_shapes);
TANDEM_EXPORT void fuse_on_devices(MutableFunction& function, Placement& placement);

}  // namespace tandem
