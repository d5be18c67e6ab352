#pragma once

#include "tandem/runtime/device_config.h"

namespace tandem {

/// Fills what `config` (with short device names) leaves unsaid from TANDEM_EMULATE,
/// TANDEM_PLUGINS, TANDEM_VISIBLE_DEVICES, TANDEM_LOGICAL_DEVICES, TANDEM_MEMORY_LIMIT_MB,
/// TANDEM_MEMORY_GROWTH, TANDEM_SOFT_PLACEMENT, TANDEM_LOG_DEVICE_PLACEMENT, TANDEM_PLACEMENT,
/// TANDEM_PLACEMENT_PROFILE and TANDEM_LOG_LEVEL; an empty variable counts as not set.
/// docs/devices.md has their forms. Throws InvalidArgumentError naming the variable that is
/// malformed, even where the program overrides it.
void read_environment(DeviceConfig& config);

}  // namespace tandem
