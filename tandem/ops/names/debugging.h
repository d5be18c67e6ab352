#pragma once

// Names of tf.debugging that are declared elsewhere: see tandem/ops/names/math.h.

#include "tandem/ops/debugging_ops.h"
#include "tandem/ops/identity_ops.h"

namespace tandem::debugging {

using tandem::check_numerics;

}  // namespace tandem::debugging
