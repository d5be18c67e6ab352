#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// A kernel or a transfer as the hardware itself did it: later than the host handed it over, and
/// perhaps beside others.
struct HardwareEvent {
  std::string_view name;      ///< of the kernel; "copy to the device" and the like
  std::uint32_t stream = 0;   ///< the hardware's own number: events of one follow each other
  std::int64_t begin_ns = 0;  ///< of the steady clock
  std::int64_t end_ns = 0;
  double bytes = 0;  ///< moved by a transfer
};

/// A device whose driver reports what the hardware did when. Thread-safe.
class TANDEM_EXPORT HardwareTracer {
 public:
  virtual ~HardwareTracer();
  virtual bool can_trace() const = 0;
  /// From now on events are kept. Throws the device's error.
  virtual void begin_trace() = 0;
  /// Calls `report` with each event since `begin_trace` that is over, of the whole physical device;
  /// where several logical devices share that, of the first that asks. Nothing is kept any more.
  virtual void end_trace(const std::function<void(const HardwareEvent&)>& report) = 0;
};

/// The device, if its driver reports that; else null.
TANDEM_EXPORT HardwareTracer* hardware_tracer(Device& device);

}  // namespace tandem
