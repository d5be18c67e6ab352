#pragma once

#include <memory>
#include <span>

#include "tandem/device/communicator.h"

namespace tandem {

class PluginDevice;

/// That of devices of one plugin, made at the first call; null where the plugin has none for them.
std::shared_ptr<Communicator> plugin_communicator(std::span<Device* const> devices);

/// The device is about to end: communicators that it is part of are not used any more.
void drop_communicators_of(const PluginDevice& device);

}  // namespace tandem
