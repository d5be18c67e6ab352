#pragma once

#include "tandem/core/export.h"
#include "tandem/device/plugin.h"

namespace tandem {

/// Registers the kernels in a plugin's table for every runtime, as a KernelRegistration does; the
/// texts of the table are used for ever. Plugins that are loaded by load_plugin are seen to without
/// it. Throws InvalidArgumentError for a kernel without an op or a function.
TANDEM_EXPORT void register_plugin_kernels(const TandemPluginApi& plugin);

}  // namespace tandem
