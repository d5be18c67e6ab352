#include "tandem/device/communicator.h"

#include "tandem/device/plugin/internal/plugin_communicator.h"

namespace tandem {

Communicator::~Communicator() = default;

// Plugins are the one kind of device that has them.
std::shared_ptr<Communicator> communicator_of(std::span<Device* const> devices) {
  return plugin_communicator(devices);
}

}  // namespace tandem
