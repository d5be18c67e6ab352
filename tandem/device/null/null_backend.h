#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// Devices of one type. `properties.memory_bytes` has to be given.
struct NullSpec {
  std::string type = "GPU";
  int count = 1;
  DeviceProperties properties = {};
};

class NullHardware;

/// Devices that compute nothing and take no time: for planning, and for tests of everything above
/// the kernels.
///
/// A runtime with such devices places, plans and runs as with others; work is over when it is
/// enqueued. Shapes and dtypes are right, and so are integers and booleans of such, what lies in
/// the host's memory and what is only forwarded. Floats that the device would compute are memory
/// that was never written, which takes none of the host's; reading them, or what comes of them, is
/// a FailedPreconditionError. It is as on emulated devices with compute=timed, whose rules
/// docs/devices.md has.
class TANDEM_EXPORT NullBackend final : public Backend {
 public:
  explicit NullBackend(std::vector<NullSpec> specs);
  ~NullBackend() override;

  std::string name() const override { return "null"; }
  std::vector<PhysicalDevice> physical_devices() const override;
  DeviceProperties properties(const PhysicalDevice& physical) const override;
  std::shared_ptr<Device> make_device(const PhysicalDevice& physical,
                                      const LogicalDeviceOptions& options,
                                      DeviceSpec spec) override;

 private:
  const std::shared_ptr<NullHardware>& find(const PhysicalDevice& physical) const;

  std::vector<std::shared_ptr<NullHardware>> hardware_;
};

}  // namespace tandem
