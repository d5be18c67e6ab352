#include "tandem/device/hardware_trace.h"

namespace tandem {

HardwareTracer::~HardwareTracer() = default;

HardwareTracer* hardware_tracer(Device& device) {
  auto* tracer = dynamic_cast<HardwareTracer*>(&device);
  return tracer && tracer->can_trace() ? tracer : nullptr;
}

}  // namespace tandem
