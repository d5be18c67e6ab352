#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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
  /// The first CPU of its task: index in the set. In its memory lie values on the host.
  int host = 0;
  std::string machine;  ///< on which its task runs; empty: one of its own
  std::string lost;     ///< why nothing runs there any more; empty: it works

  std::string name() const { return spec.to_string(); }
};

/// A connection between the hosts of tasks.
struct NetworkLink {
  double bandwidth = 0;  ///< bytes a second
  double latency = 0;    ///< seconds a copy
};

/// The devices that a graph may be placed on, of one task or of several. Device 0 is the first CPU
/// of the first task; without other tasks, "the host".
struct TANDEM_EXPORT DeviceSet {
  std::vector<DeviceModel> devices;
  /// Between tasks of different machines that `links` does not name.
  NetworkLink network;
  /// By the names of two machines, in alphabetical order; a task without one is a machine of the
  /// task's name.
  std::map<std::pair<std::string, std::string>, NetworkLink> links;

  int size() const { return static_cast<int>(devices.size()); }
  /// The index of a device by its full or short ("GPU:0") name; -1 if there is none.
  int find(std::string_view name) const;
  /// Memory spaces are numbered like devices; all CPUs of a task share that of the first, its host.
  int memory_of(int device) const {
    const DeviceModel& model = devices[static_cast<std::size_t>(device)];
    return model.host_memory ? model.host : device;
  }
  /// The memory of the host of a device, or of a memory space.
  int host_of(int device) const { return devices[static_cast<std::size_t>(device)].host; }
  /// Seconds to copy between two memory spaces; 0 within one. Between two accelerators of a task
  /// the slower link counts once, between two parts of one its memory's bandwidth. Between tasks
  /// values go from host to host: the times of all hops add up.
  double copy_seconds(int from_memory, int to_memory, double bytes) const;
  /// The memory from which a value that comes from another one gets there: `from_memory` itself, or
  /// a host's on the way.
  int hop_before(int to_memory, int from_memory) const {
    const int source = host_of(from_memory), target = host_of(to_memory);
    if (source == target) return from_memory;
    return to_memory != target ? target : source;
  }
  /// Finds each device's host. Throws InvalidArgumentError naming a task without a CPU.
  void find_hosts();

  /// The set of existing devices. Properties that a device does not report are estimated.
  static DeviceSet of(const std::vector<std::shared_ptr<Device>>& devices);
  /// From JSON as bench/devices/*.json and docs/placement.md have it. Throws InvalidArgumentError
  /// that names the field.
  static DeviceSet parse_json(std::string_view text);

 private:
  double hop_seconds(int from_memory, int to_memory, double bytes) const;
  double network_seconds(int from_host, int to_host, double bytes) const;
};

}  // namespace tandem
