#pragma once

#include <memory>
#include <string>

#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/device/plugin.h"

namespace tandem {

/// The devices of a shared library that follows tandem/device/plugin.h.
///
/// A library is loaded once in a process, however often it is asked for, and stays; its kernels are
/// registered with it. Throws NotFoundError for a file that isn't there, InvalidArgumentError for
/// one that is no plugin or of another version, and what the plugin's own start reports.
TANDEM_EXPORT std::unique_ptr<Backend> load_plugin(const std::string& path);

/// Loses the physical device behind `device`, where its plugin has a way to do so; for tests.
/// Throws UnimplementedError otherwise.
TANDEM_EXPORT void lose_plugin_device(Device& device);

/// The plugin's handle of a device; null for devices of other backends.
TANDEM_EXPORT TandemDevice* plugin_handle(const Device& device);

/// Who registers the kernels of plugins: set by the module graph, which knows of kernels.
/// It is called at once for plugins that were loaded before.
using PluginKernelSink = void (*)(const TandemPluginApi& plugin);
TANDEM_EXPORT void set_plugin_kernel_sink(PluginKernelSink sink);
/// What plugins are given for their kernels; filled in by graph too, before any plugin is loaded.
TANDEM_EXPORT TandemHostApi& plugin_host_api();

}  // namespace tandem
