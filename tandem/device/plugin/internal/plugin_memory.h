#pragma once

#include <memory>
#include <string>

#include "tandem/device/device.h"

namespace tandem {

class PluginDevice;
class PluginHandle;

/// Device memory: blocks of what the plugin allocates. `most` bytes are there altogether; 0 if that
/// is not known.
std::unique_ptr<Allocator> make_plugin_allocator(PluginDevice& device,
                                                 const std::shared_ptr<PluginHandle>& handle,
                                                 std::size_t most,
                                                 const LogicalDeviceOptions& options);
/// `way`, which may be empty, to more memory, and that other processes hold less of it.
std::string with_less_use_by_others(const std::string& way);
/// Host memory for copies: the plugin's, where it offers some, in blocks; else plain memory.
std::unique_ptr<Allocator> make_staging_allocator(const PluginDevice& device,
                                                  const std::shared_ptr<PluginHandle>& handle);

/// Staging memory that counts as the device's, for its kernels to read.
Ref<Buffer> host_readable(Ref<Buffer> staging, std::shared_ptr<PluginDevice> device);

}  // namespace tandem
