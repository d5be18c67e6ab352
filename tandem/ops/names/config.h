#pragma once

// Names of tf.config that are declared elsewhere: see tandem/ops/names/math.h.

#include "tandem/runtime/config.h"
#include "tandem/runtime/function_mode.h"

namespace tandem::config {

using tandem::PhysicalDevice;

/// TensorFlow's older paths.
namespace experimental {

using config::enable_op_determinism;
using config::get_device_details;
using config::get_memory_growth;
using config::get_memory_info;
using config::get_synchronous_execution;
using config::get_virtual_device_configuration;
using config::get_visible_devices;
using config::list_logical_devices;
using config::list_physical_devices;
using config::reset_memory_stats;
using config::set_memory_growth;
using config::set_synchronous_execution;
using config::set_virtual_device_configuration;
using config::set_visible_devices;
using config::VirtualDeviceConfiguration;

}  // namespace experimental
}  // namespace tandem::config
