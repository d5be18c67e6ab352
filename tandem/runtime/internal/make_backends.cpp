#include "tandem/runtime/internal/make_backends.h"

#include "tandem/core/error.h"
#include "tandem/device/emulated/emulated_backend.h"
#include "tandem/device/host/host_backend.h"

namespace tandem {

std::vector<std::shared_ptr<Backend>> make_backends(const DeviceConfig& config) {
  static const auto host = std::make_shared<HostBackend>();
  std::vector<std::shared_ptr<Backend>> backends{host};
  if (!config.plugins.empty())
    throw UnimplementedError("Plugins cannot be loaded by this build of Tandem.");
  return backends;
}

std::vector<std::shared_ptr<Backend>> make_emulated_backends(const DeviceConfig& config) {
  std::vector<EmulatedSpec> specs;
  for (const std::string& text : config.emulate) {
    for (EmulatedSpec& spec : EmulatedSpec::parse(text)) specs.push_back(std::move(spec));
  }
  if (specs.empty()) return {};
  return {std::make_shared<EmulatedBackend>(std::move(specs))};
}

}  // namespace tandem
