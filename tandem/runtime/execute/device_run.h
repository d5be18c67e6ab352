#pragma once

#include <exception>
#include <functional>

#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/execute/device_plan.h"

namespace tandem {

/// One call of a DevicePlan: returns when every step is over; throws the first failure. A failed
/// step's consumers are skipped, the rest still runs.
void run_on_devices(const DevicePlan& plan, Plan::Frame& frame, const StepContext& within);

/// The same without a thread that waits: calls `done` once, from any thread, perhaps before it
/// returns. What it was given stays valid until then.
void run_on_devices_async(const DevicePlan& plan, Plan::Frame& frame, const StepContext& within,
                          std::function<void(std::exception_ptr)> done);

}  // namespace tandem
