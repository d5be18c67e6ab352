#pragma once

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "tandem/device/emulated/emulated_backend.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/device/memory_space.h"

namespace tandem {

inline std::shared_ptr<EmulatedDevice> emulated_device(EmulatedBackend& backend,
                                                       std::size_t physical = 0, int index = 0,
                                                       const LogicalDeviceOptions& options = {}) {
  const PhysicalDevice id = backend.physical_devices().at(physical);
  DeviceSpec spec = DeviceSpec::parse("/job:localhost/replica:0/task:0");
  spec.type = id.device_type;
  spec.index = index;
  return std::static_pointer_cast<EmulatedDevice>(backend.make_device(id, options, spec));
}

/// The only device of a backend of its own.
inline std::shared_ptr<EmulatedDevice> emulated_device(std::string_view spec) {
  EmulatedBackend backend(EmulatedSpec::parse(spec));
  return emulated_device(backend);
}

/// Where the device's kernels see a buffer.
inline unsigned char* kernel_bytes(const Ref<Buffer>& buffer) {
  return static_cast<unsigned char*>(buffer->data()) + buffer->space()->kernel_offset;
}

}  // namespace tandem
