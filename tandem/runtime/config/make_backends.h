#pragma once

#include <memory>
#include <vector>

#include "tandem/device/device.h"
#include "tandem/device/emulated/emulated_spec.h"
#include "tandem/runtime/device_config.h"

namespace tandem {

/// The host, CUDA and the configured plugins.
std::vector<std::shared_ptr<Backend>> make_backends(const DeviceConfig& config);

/// Where it is said what to emulate, for errors: the variable, or the name that a program uses.
const char* emulate_setting(const DeviceConfig& config);

/// What is to be emulated. Throws InvalidArgumentError naming where a malformed text comes from.
std::vector<EmulatedSpec> emulated_specs(const DeviceConfig& config);

/// Emulated devices; new ones at each call, so that runtimes share no emulated memory.
std::vector<std::shared_ptr<Backend>> make_emulated_backends(const DeviceConfig& config);

}  // namespace tandem
