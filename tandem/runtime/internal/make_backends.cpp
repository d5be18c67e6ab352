#include "tandem/runtime/internal/make_backends.h"

#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/emulated/emulated_backend.h"
#include "tandem/device/host/host_backend.h"
#include "tandem/device/plugin_backend.h"

namespace tandem {

std::vector<std::shared_ptr<Backend>> make_backends(const DeviceConfig& config) {
  static const auto host = std::make_shared<HostBackend>();
  std::vector<std::shared_ptr<Backend>> backends{host};
  const bool of_program = config.origin("plugins") == "program";
  for (const std::string& path : config.plugins) {
    try {
      backends.push_back(load_plugin(path));
    } catch (const Error& error) {
      if (of_program) throw;
      throw_error(error.code(), cat("TANDEM_PLUGINS: ", error.what()));
    }
  }
  return backends;
}

std::vector<EmulatedSpec> emulated_specs(const DeviceConfig& config) {
  const bool of_program = config.origin("emulate") == "program";
  const char* const variable = of_program ? "td::config::emulate" : "TANDEM_EMULATE";
  std::vector<EmulatedSpec> specs;
  for (const std::string& text : config.emulate) {
    const std::vector<EmulatedSpec> more = EmulatedSpec::parse(text, variable);
    specs.insert(specs.end(), more.begin(), more.end());
  }
  return specs;
}

std::vector<std::shared_ptr<Backend>> make_emulated_backends(const DeviceConfig& config) {
  std::vector<EmulatedSpec> specs = emulated_specs(config);
  if (specs.empty()) return {};
  return {std::make_shared<EmulatedBackend>(std::move(specs))};
}

}  // namespace tandem
