#pragma once

#include "tandem/data/iteration_context.h"

namespace tandem::data {

/// The root of an iteration that only looks at what elements are like: datasets with random state
/// do not count its passes, so that what follows is as if there were none.
IterationContext trial_context();

}  // namespace tandem::data
