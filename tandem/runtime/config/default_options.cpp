#include "tandem/runtime/config/default_options.h"

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"

namespace tandem {

DefaultOptions& default_options() {
  static NeverDestroyed<DefaultOptions> options;
  return *options;
}

void check_threads(int threads, const char* which) {
  if (threads >= 0 && threads <= kMaxThreads) return;
  throw InvalidArgumentError(cat(which, " parallelism must be 0 (one for each processor) to ",
                                 kMaxThreads, " threads but is ", threads, "."));
}

DefaultOptions::Devices DefaultOptions::locked_devices() {
  DeviceConfig config = DeviceConfig::with_environment(options_.devices);
  const bool fits = inventory_ && config.emulate == inventory_config_.emulate &&
                    config.plugins == inventory_config_.plugins &&
                    config.backends == inventory_config_.backends;
  if (!fits) {
    inventory_ = std::make_shared<const DeviceInventory>(config);
    inventory_config_ = config;
  }
  return {std::move(config), inventory_};
}

DefaultOptions::Devices DefaultOptions::devices() {
  std::lock_guard lock(mutex_);
  return locked_devices();
}

bool DefaultOptions::change_devices(
    const std::function<void(DeviceConfig&, const Devices&)>& change) {
  std::lock_guard lock(mutex_);
  if (started()) return false;
  DeviceConfig changed = options_.devices;
  change(changed, locked_devices());
  options_.devices = std::move(changed);
  return true;
}

}  // namespace tandem
