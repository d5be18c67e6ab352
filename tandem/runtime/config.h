#pragma once

#include "tandem/core/export.h"
#include "tandem/graph/optimizer_options.h"

namespace tandem::config {

/// Ops give the same bits from run to run and for every number of threads (per build and kind of
/// machine), where need be slower. Takes effect at once, for the current runtime and for those made
/// later.
TANDEM_EXPORT void enable_op_determinism(bool on = true);
TANDEM_EXPORT bool op_determinism_enabled();

namespace optimizer {

using Options = OptimizerOptions;

/// Which passes change graphs before they run, in the whole process. Takes effect at the next call
/// of each function, which is optimised anew; calls that are running end as they began. Functions
/// made with `optimize = false` stay as they are.
TANDEM_EXPORT void set_experimental_options(const Options& options);
TANDEM_EXPORT Options get_experimental_options();

}  // namespace optimizer

namespace threading {

/// Threads for the work inside one op (0: one for each processor). Throws FailedPreconditionError
/// once the runtime has started, unless the number is the one in force.
TANDEM_EXPORT void set_intra_op_parallelism_threads(int threads);
TANDEM_EXPORT int get_intra_op_parallelism_threads();
/// Ops of a graph that run side by side (0: one for each processor). Throws like the above.
TANDEM_EXPORT void set_inter_op_parallelism_threads(int threads);
TANDEM_EXPORT int get_inter_op_parallelism_threads();

}  // namespace threading
}  // namespace tandem::config
