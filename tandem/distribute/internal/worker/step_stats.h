#pragma once

#include <cstdint>

#include "tandem/distribute/proto/messages.h"
#include "tandem/graph/function.h"
#include "tandem/runtime/profiler.h"

namespace tandem::distribute {

/// Read from the system's clock.
std::int64_t microseconds_now();

/// What was recorded of a run of `function`, as TensorFlow's StepStats: a list for each device.
/// `started`: when the recording began, in microseconds of the system's clock.
proto::StepStats step_stats(const profiler::Profile& profile, const Function& function,
                            std::int64_t started);

}  // namespace tandem::distribute
