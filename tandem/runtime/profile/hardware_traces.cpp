#include "tandem/runtime/profile/hardware_traces.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/hardware_trace.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {

HardwareTraces& HardwareTraces::of_profiler() {
  static NeverDestroyed<HardwareTraces> traces;
  return *traces;
}

// A recording must not be what fixes the configuration of devices.
void HardwareTraces::begin() {
  if (!thread_context().runtime && !Runtime::default_exists()) return;
  const MutexLock lock(mutex_);
  for (const std::shared_ptr<Device>& device : Runtime::current().devices()) {
    HardwareTracer* const tracer = hardware_tracer(*device);
    if (!tracer) continue;
    try {
      tracer->begin_trace();
      traced_.push_back(device);
    } catch (const Error& error) {
      log(LogLevel::kWarning, cat("The profile has no times of the hardware: ", error.what()));
    }
  }
}

void HardwareTraces::end(StepRecorder& recorder) {
  std::vector<std::shared_ptr<Device>> traced;
  {
    const MutexLock lock(mutex_);
    traced = std::exchange(traced_, {});
  }
  for (const std::shared_ptr<Device>& device : traced) {
    hardware_tracer(*device)->end_trace(
        [&](const HardwareEvent& event) { recorder.hardware(*device, event); });
  }
}

}  // namespace tandem
