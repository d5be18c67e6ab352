#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"

namespace tandem {

/// The CPU: work runs at once on the calling thread, memory is the host's.
class TANDEM_EXPORT HostBackend final : public Backend {
 public:
  std::string name() const override { return "host"; }
  std::vector<std::shared_ptr<Device>> make_devices() override;
};

}  // namespace tandem
