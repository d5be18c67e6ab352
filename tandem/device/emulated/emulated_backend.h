#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_spec.h"

namespace tandem {

class EmulatedPhysical;

/// Makes EmulatedDevices. Devices of one type are numbered through all specs: "GPU:1;GPU:2" are
/// GPU:0, GPU:1 and GPU:2.
///
/// Logical devices of one physical share its memory, link and faults, and exchange data at memory
/// bandwidth; those of different ones exchange it over the slower of their links.
class TANDEM_EXPORT EmulatedBackend final : public Backend {
 public:
  /// Throws InvalidArgumentError for a spec that no text could give.
  explicit EmulatedBackend(std::vector<EmulatedSpec> specs);
  ~EmulatedBackend() override;

  std::string name() const override { return "emulated"; }
  std::vector<PhysicalDevice> physical_devices() const override;
  DeviceProperties properties(const PhysicalDevice& physical) const override;
  std::shared_ptr<Device> make_device(const PhysicalDevice& physical,
                                      const LogicalDeviceOptions& options,
                                      DeviceSpec spec) override;
  std::string unavailable() const override;

 private:
  const std::shared_ptr<EmulatedPhysical>& find(const PhysicalDevice& physical) const;

  std::vector<std::shared_ptr<EmulatedPhysical>> physicals_;
};

}  // namespace tandem
