#pragma once

#include <exception>
#include <functional>

#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/execute/plan.h"

namespace tandem {

class InterOpPool;

/// Runs a dataflow plan: each step as soon as what it depends on is done, on the caller and the
/// pool's workers. Steps that may wait (asynchronous kernels) hold no thread. Throws the first
/// failure after everything has ended; steps that do not depend on a failed one still run.
void run_dataflow(const Plan& plan, Plan::Frame& frame, const StepContext& within,
                  InterOpPool& pool);

/// The same without a thread that waits: calls `done` once, from any thread, perhaps before it
/// returns. What it was given stays valid until then.
void run_dataflow_async(const Plan& plan, Plan::Frame& frame, const StepContext& within,
                        InterOpPool& pool, std::function<void(std::exception_ptr)> done);

}  // namespace tandem
