#include "tandem/runtime/config/make_backends.h"

#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/device/cuda/cuda_backend.h"
#include "tandem/device/emulated/emulated_backend.h"
#include "tandem/device/host/host_backend.h"
#include "tandem/device/plugin_backend.h"

namespace tandem {

std::vector<std::shared_ptr<Backend>> make_backends(const DeviceConfig& config) {
  static const NeverDestroyed<std::shared_ptr<HostBackend>> host(std::make_shared<HostBackend>);
  // The driver is asked once in a process.
  static const NeverDestroyed<std::shared_ptr<CudaBackend>> cuda(std::make_shared<CudaBackend>);
  std::vector<std::shared_ptr<Backend>> backends{*host, *cuda};
  const bool of_program = config.origin("plugins") == "program";
  std::set<std::string> loaded;  // the same file may go by several names
  for (const std::string& path : config.plugins) {
    std::error_code unknown;
    const auto file = std::filesystem::weakly_canonical(path, unknown);
    if (!unknown && !loaded.insert(file).second) continue;
    try {
      backends.push_back(load_plugin(path));
    } catch (const Error& error) {
      if (of_program) throw;
      throw_error(error.code(), cat("TANDEM_PLUGINS: ", error.what()));
    }
  }
  return backends;
}

const char* emulate_setting(const DeviceConfig& config) {
  return config.origin("emulate") == "program" ? "emulate" : "TANDEM_EMULATE";
}

std::vector<EmulatedSpec> emulated_specs(const DeviceConfig& config) {
  const char* const variable = emulate_setting(config);
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
