#pragma once

#include <vector>

#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/execute/plan.h"

namespace tandem {

/// How long one step took, and whether its kernel used the intra-op workers.
struct StepTime {
  double seconds = 0;
  bool parallel_inside = false;
};

/// Runs the steps of a sequential plan one after the other on the calling thread. Throws the first
/// failure; steps that do not depend on a failed one still run. If `times` is given, it receives
/// one entry a step.
void run_sequential(const Plan& plan, Plan::Frame& frame, const StepContext& within,
                    std::vector<StepTime>* times = nullptr);

}  // namespace tandem
