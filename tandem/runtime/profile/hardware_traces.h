#pragma once

#include <memory>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/device/device.h"

namespace tandem {

class StepRecorder;

/// What the devices themselves do while `profiler::start` records (device/hardware_trace.h).
/// Thread-safe.
class HardwareTraces {
 public:
  static HardwareTraces& of_profiler();
  /// On the calling thread's runtime, if there is one already. A device that cannot is left out,
  /// with a line of why.
  void begin() TANDEM_EXCLUDES(mutex_);
  void end(StepRecorder& recorder) TANDEM_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<Device>> traced_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem
