#pragma once

// Names of tf.debugging that are declared elsewhere: see tandem/ops/names/math.h.

#include "tandem/ops/debugging_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/runtime/check_numerics.h"
#include "tandem/runtime/config.h"

namespace tandem::debugging {

using config::debugging::get_log_device_placement;
using config::debugging::set_log_device_placement;
using tandem::check_numerics;

}  // namespace tandem::debugging
