#pragma once

#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/execute/device_plan.h"

namespace tandem {

/// One call of a DevicePlan: returns when every step is over; throws the first failure. A failed
/// step's consumers are skipped, the rest still runs.
void run_on_devices(const DevicePlan& plan, Plan::Frame& frame, const Cancellation* cancellation);

}  // namespace tandem
