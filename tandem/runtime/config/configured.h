#pragma once

#include "tandem/runtime/config/default_options.h"
#include "tandem/runtime/runtime.h"

namespace tandem::config {

using Devices = DefaultOptions::Devices;

/// The thread's runtime if it has started, else null: then the default one is yet to be made.
Runtime* running();

/// What is in force for the thread's runtime.
Devices devices_now();

PlacementPolicy policy_of(const DeviceConfig& config);

/// Sets what may change at any time: `of_config(DeviceConfig&)` alters what the default runtime
/// will be made with; once the thread's runtime has started, `of_runtime(Runtime&)` alters that.
template <class OfRuntime, class OfConfig>
void set_any_time(OfRuntime of_runtime, OfConfig of_config) {
  const auto change = [&](DeviceConfig& config, const Devices&) { of_config(config); };
  if (!running() && default_options().change_devices(change)) return;
  of_runtime(Runtime::current());
}

}  // namespace tandem::config
