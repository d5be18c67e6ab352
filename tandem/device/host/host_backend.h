#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// The CPU: work runs at once on the calling thread, memory is the host's. Logical CPUs share both.
class TANDEM_EXPORT HostBackend final : public Backend {
 public:
  std::string name() const override { return "host"; }
  std::vector<PhysicalDevice> physical_devices() const override;
  DeviceProperties properties(const PhysicalDevice& physical) const override;
  std::shared_ptr<Device> make_device(const PhysicalDevice& physical,
                                      const LogicalDeviceOptions& options,
                                      DeviceSpec spec) override;
};

}  // namespace tandem
