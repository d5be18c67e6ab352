// The rows of `life` about TensorBoard.
#pragma once

#include "bench/common/serve.h"

namespace bench {

// scalar: nanoseconds that summary::scalar takes its caller, the writer's thread working beside it.
// xplane_overhead: a training step of an MLP that is profiled / one that is not.
void add_summary_rows(Rows& rows);

}  // namespace bench
