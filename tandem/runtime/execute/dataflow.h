#pragma once

#include <memory>

#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/execute/plan.h"

namespace tandem {

class InterOpPool;

/// Runs a dataflow plan: each step as soon as what it depends on is done, on the caller and the
/// pool's workers. Steps that may wait (asynchronous kernels) hold no thread. Throws the first
/// failure after everything has ended; steps that do not depend on a failed one still run.
void run_dataflow(const Plan& plan, Plan::Frame& frame, const Cancellation* cancellation,
                  InterOpPool& pool);

}  // namespace tandem
