#include "tandem/placement/device_set.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/machine.h"
#include "tandem/device/device.h"

namespace tandem {
namespace {

// Defaults for a device that does not report its properties: a core of a common processor, and a
// small accelerator.
constexpr double kFlopsOfCore = 3e10;
constexpr double kHostBandwidth = 1e10;
constexpr double kHostOverhead = 2e-7;
constexpr double kFlops = 1e12;
constexpr double kBandwidth = 1e11;
constexpr double kOverhead = 5e-6;
constexpr double kLinkBandwidth = 1e10;
constexpr double kLinkLatency = 1e-5;

double reported(double value, double otherwise) { return value > 0 ? value : otherwise; }

DeviceModel model_of(Device& device) {
  const DeviceProperties& properties = device.properties();
  DeviceModel model;
  model.spec = device.spec();
  model.kernel_class = device.kernel_class();
  model.host_memory = device.memory_space() == nullptr;
  const bool host = model.host_memory;
  const double cores = machine_limits().processors;
  model.flops = reported(properties.flops, host ? kFlopsOfCore * cores : kFlops);
  model.memory_bandwidth =
      reported(properties.memory_bandwidth, host ? kHostBandwidth : kBandwidth);
  // Emulated devices take the modelled time and nothing else.
  model.launch_overhead =
      properties.emulated ? properties.launch_overhead
                          : reported(properties.launch_overhead, host ? kHostOverhead : kOverhead);
  if (!host) {
    model.link_bandwidth = reported(properties.link_bandwidth, kLinkBandwidth);
    model.link_latency = reported(properties.link_latency, kLinkLatency);
  }
  model.computes = properties.computes;
  const std::size_t limit = device.allocator().stats().limit;
  model.memory_bytes = limit > 0 ? limit : properties.memory_bytes;
  model.streams = std::max(1, properties.compute_streams);
  model.without = properties.without;
  model.lost = device.lost();
  return model;
}

}  // namespace

int DeviceSet::find(std::string_view name) const {
  const DeviceSpec wanted = DeviceSpec::parse(name);
  if (!wanted.type || !wanted.index) return -1;
  const auto it = std::find_if(devices.begin(), devices.end(),
                               [&](const DeviceModel& d) { return wanted.matches(d.spec); });
  return it == devices.end() ? -1 : static_cast<int>(it - devices.begin());
}

void DeviceSet::find_hosts() {
  std::map<std::string, int> hosts;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].host_memory)
      hosts.emplace(devices[d].spec.task_spec().to_string(), static_cast<int>(d));
  }
  for (DeviceModel& device : devices) {
    const std::string task = device.spec.task_spec().to_string();
    const auto host = hosts.find(task);
    if (host == hosts.end()) {
      throw InvalidArgumentError(
          cat(task, " has the device ", device.name(), " but no CPU, which each task needs."));
    }
    device.host = host->second;
  }
}

double DeviceSet::network_seconds(int from_host, int to_host, double bytes) const {
  const auto machine = [&](int host) {
    const DeviceModel& model = devices[static_cast<std::size_t>(host)];
    return model.machine.empty() ? model.spec.task_spec().to_string() : model.machine;
  };
  std::pair<std::string, std::string> ends(machine(from_host), machine(to_host));
  if (ends.second < ends.first) std::swap(ends.first, ends.second);
  if (const auto link = links.find(ends); link != links.end()) {
    return link->second.latency + (link->second.bandwidth > 0 ? bytes / link->second.bandwidth : 0);
  }
  // Processes of one machine copy in its memory.
  if (ends.first == ends.second) {
    const double rate = devices[static_cast<std::size_t>(from_host)].memory_bandwidth;
    return rate > 0 ? bytes / rate : 0;
  }
  return network.latency + (network.bandwidth > 0 ? bytes / network.bandwidth : 0);
}

double DeviceSet::copy_seconds(int from_memory, int to_memory, double bytes) const {
  const int source = host_of(from_memory), target = host_of(to_memory);
  if (source == target) return hop_seconds(from_memory, to_memory, bytes);
  return hop_seconds(from_memory, source, bytes) + network_seconds(source, target, bytes) +
         hop_seconds(target, to_memory, bytes);
}

double DeviceSet::hop_seconds(int from_memory, int to_memory, double bytes) const {
  if (from_memory == to_memory) return 0;
  const DeviceModel& source = devices[static_cast<std::size_t>(from_memory)];
  const DeviceModel& target = devices[static_cast<std::size_t>(to_memory)];
  if (source.physical >= 0 && source.physical == target.physical && source.memory_bandwidth > 0)
    return bytes / source.memory_bandwidth;
  double latency = 0;
  double bandwidth = 0;
  for (const int space : {from_memory, to_memory}) {
    const DeviceModel& device = devices[static_cast<std::size_t>(space)];
    if (device.host_memory) continue;
    latency = std::max(latency, device.link_latency);
    if (device.link_bandwidth > 0) {
      bandwidth =
          bandwidth > 0 ? std::min(bandwidth, device.link_bandwidth) : device.link_bandwidth;
    }
  }
  return latency + (bandwidth > 0 ? bytes / bandwidth : 0);
}

DeviceSet DeviceSet::of(const std::vector<std::shared_ptr<Device>>& devices) {
  DeviceSet set;
  for (const auto& device : devices) set.devices.push_back(model_of(*device));
  if (set.devices.empty() || !set.devices.front().host_memory) {
    throw InternalError("the first device of a set must be a CPU");
  }
  set.find_hosts();
  return set;
}

}  // namespace tandem
