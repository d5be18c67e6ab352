#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// Devices of one type that are only planned with. `properties.memory_bytes` has to be given.
struct NullSpec {
  std::string type = "GPU";
  int count = 1;
  DeviceProperties properties;
};

class NullHardware;

/// Devices that compute nothing: for planning, and for tests of everything above the kernels.
///
/// Allocations are accounted for and have addresses, but no memory. Work of the device is over when
/// it is enqueued, without being run; work on host memory (Work::on_host) is run, since plans hang
/// on it. What is copied to the host is zero.
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
