#include "tandem/device/emulated/emulated_backend.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/device/emulated/emulated_device.h"
#include "tandem/device/emulated/internal/emulated_core.h"
#include "tandem/device/emulated/internal/emulated_physical.h"
#include "tandem/device/internal/byte_size.h"

namespace tandem {

EmulatedBackend::EmulatedBackend(std::vector<EmulatedSpec> specs) {
  static std::atomic<std::uint64_t> backends{0};
  const std::uint64_t id = ++backends;
  std::map<std::string, int> next;
  for (const EmulatedSpec& spec : specs) {
    spec.validate();
    for (int i = 0; i < spec.count; ++i) {
      PhysicalDevice physical{cat("/physical_device:", spec.type, ':', next[spec.type]++),
                              spec.type};
      physicals_.push_back(std::make_shared<EmulatedPhysical>(spec, std::move(physical), id));
    }
  }
}

EmulatedBackend::~EmulatedBackend() = default;

std::vector<PhysicalDevice> EmulatedBackend::physical_devices() const {
  std::vector<PhysicalDevice> devices;
  for (const auto& physical : physicals_) devices.push_back(physical->id());
  return devices;
}

const std::shared_ptr<EmulatedPhysical>& EmulatedBackend::find(
    const PhysicalDevice& physical) const {
  const auto found = std::find_if(physicals_.begin(), physicals_.end(),
                                  [&](const auto& p) { return p->id() == physical; });
  if (found == physicals_.end()) {
    throw InvalidArgumentError(cat("There is no emulated device ", physical.name, '.'));
  }
  return *found;
}

DeviceProperties EmulatedBackend::properties(const PhysicalDevice& physical) const {
  return emulated_properties(find(physical)->spec());
}

std::shared_ptr<Device> EmulatedBackend::make_device(const PhysicalDevice& physical,
                                                     const LogicalDeviceOptions& options,
                                                     DeviceSpec spec) {
  const std::shared_ptr<EmulatedPhysical>& hardware = find(physical);
  const std::size_t there = hardware->spec().memory;
  if (options.memory_limit && (*options.memory_limit == 0 || *options.memory_limit > there)) {
    throw InvalidArgumentError(cat("A memory limit of ", byte_text(*options.memory_limit),
                                   " is not possible on ", physical.name, ", which has ",
                                   byte_text(there), '.'));
  }
  auto core = std::make_shared<EmulatedCore>(hardware, spec.to_string(), options);
  hardware->join(core);
  return std::make_shared<EmulatedDevice>(std::move(core), std::move(spec));
}

std::string EmulatedBackend::unavailable() const {
  return physicals_.empty() ? "nothing is emulated (TANDEM_EMULATE, td::config::emulate)" : "";
}

}  // namespace tandem
