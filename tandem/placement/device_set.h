#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device_spec.h"

namespace tandem {

class Device;

/// What planning knows of one device, there or not.
struct DeviceModel {
  DeviceSpec spec;  ///< full
  std::string kernel_class = "cpu";
  double flops = 0;              ///< float operations a second
  double memory_bandwidth = 0;   ///< bytes a second
  double launch_overhead = 0;    ///< seconds between two pieces of work
  double link_bandwidth = 0;     ///< to and from the host, bytes a second; 0 for CPUs
  double link_latency = 0;       ///< seconds a copy
  std::size_t memory_bytes = 0;  ///< 0: not limited
  int streams = 1;               ///< pieces of work side by side
  bool host_memory = false;      ///< computes in the host's memory: CPUs
  /// Devices with the same number, if not negative, are cut from one physical device: copies
  /// between them go through its memory.
  int physical = -1;
  bool computes = true;              ///< false (compute=timed): integers are made in no time
  std::vector<std::string> without;  ///< ops for which it has no kernel
  std::string lost;                  ///< why nothing runs there any more; empty: it works

  std::string name() const { return spec.to_string(); }
};

/// The devices that a graph may be placed on. Device 0 is the first CPU, "the host".
struct TANDEM_EXPORT DeviceSet {
  std::vector<DeviceModel> devices;

  int size() const { return static_cast<int>(devices.size()); }
  /// The index of a device by its full or short ("GPU:0") name; -1 if there is none.
  int find(std::string_view name) const;
  /// Memory spaces are numbered like devices; all CPUs share space 0.
  int memory_of(int device) const {
    return devices[static_cast<std::size_t>(device)].host_memory ? 0 : device;
  }
  /// Seconds to copy between two memory spaces; 0 within one. Between two accelerators the slower
  /// link counts once, between two parts of one its memory's bandwidth.
  double copy_seconds(int from_memory, int to_memory, double bytes) const;

  /// The set of existing devices. Properties that a device does not report are estimated.
  static DeviceSet of(const std::vector<std::shared_ptr<Device>>& devices);
  /// From JSON as bench/devices/*.json and docs/placement.md have it. Throws InvalidArgumentError
  /// that names the field.
  static DeviceSet parse_json(std::string_view text);
};

}  // namespace tandem
