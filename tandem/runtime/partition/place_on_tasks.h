#pragma once

#include <span>

#include "tandem/core/export.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/partition/partition.h"

namespace tandem {

class Runtime;

/// Places a function over the devices of several tasks, as the placer does over those of one, and
/// makes it ready for `partition`. Calls, If, Case and While whose bodies ask for several tasks are
/// expanded (tandem/graph/expand_functions.h); others stay whole, on one task. Arguments come from
/// the first task's host. `options.fixed` and `options.default_device` are the caller's to set for
/// more. Throws as `place`.
TANDEM_EXPORT AssignedGraph place_on_tasks(const Function& function,
                                           std::span<Runtime* const> tasks,
                                           PlacementOptions options = {});

}  // namespace tandem
