#include "tandem/device/plugin_backend.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/device/library_report.h"
#include "tandem/device/plugin/internal/library.h"
#include "tandem/device/plugin/internal/plugin_device.h"

namespace tandem {
namespace {

// Beyond these a figure is a mistake: of a size that was not set, or in another unit.
constexpr int kMaxDevices = 4096;
constexpr int kMaxStreams = 64;
constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 47;

[[noreturn]] void refuse(const PluginLibrary& library, const std::string& what) {
  throw InvalidArgumentError(cat("The plugin ", library.path, " cannot be used: ", what, '.'));
}

void check_properties(const PluginLibrary& library, const std::string& device,
                      const TandemDeviceProperties& p) {
  const auto out_of_range = [&](const char* field, const auto& value, const auto& range) {
    refuse(library, cat("TandemDeviceProperties::", field, " of ", device, " is ", value,
                        " and must be ", range));
  };
  if (p.compute_streams < 0 || p.compute_streams > kMaxStreams)
    out_of_range("compute_streams", p.compute_streams, cat("1 to ", kMaxStreams));
  if (p.memory_bytes > kMaxMemory)
    out_of_range("memory_bytes", p.memory_bytes, cat("at most ", kMaxMemory));
  const std::pair<const char*, double> figures[] = {{"flops", p.flops},
                                                    {"memory_bandwidth", p.memory_bandwidth},
                                                    {"link_bandwidth", p.link_bandwidth},
                                                    {"link_latency", p.link_latency},
                                                    {"launch_overhead", p.launch_overhead}};
  for (const auto& [field, value] : figures) {
    if (!(value >= 0) || std::isinf(value)) out_of_range(field, value, "0 or more, and finite");
  }
}

class PluginBackend final : public Backend, public LibraryReport {
 public:
  explicit PluginBackend(const PluginLibrary& library) : library_(library) {
    const int count = library_.api.device_count();
    if (count < 0 || count > kMaxDevices) {
      refuse(library_, cat("TandemPluginApi::device_count gives ", count, " and must give 0 to ",
                           kMaxDevices));
    }
    for (int i = 0; i < count; ++i) properties_of(i);
  }

  std::string name() const override { return library_.api.name; }

  std::vector<PhysicalDevice> physical_devices() const override {
    std::vector<PhysicalDevice> devices;
    const int count = library_.api.device_count();
    for (int i = 0; i < count; ++i) devices.push_back({name_of(i), library_.api.device_type});
    return devices;
  }

  DeviceProperties properties(const PhysicalDevice& physical) const override {
    return properties_of(index_of(physical));
  }

  std::shared_ptr<Device> make_device(const PhysicalDevice& physical,
                                      const LogicalDeviceOptions& options,
                                      DeviceSpec spec) override {
    const int index = index_of(physical);
    const DeviceProperties known = properties_of(index);
    if (options.memory_limit && known.memory_bytes != 0 &&
        *options.memory_limit > known.memory_bytes) {
      throw InvalidArgumentError(cat("A memory limit of ", *options.memory_limit, " bytes for ",
                                     physical.name, ", which has ", known.memory_bytes, '.'));
    }
    return PluginDevice::make(library_, index, known, options, std::move(spec));
  }

  // Plug-ins of versions before 1.5 end before it, and the rest of the table is null.
  std::string libraries() const override {
    const char* const lines = library_.api.libraries ? library_.api.libraries() : nullptr;
    return lines ? lines : "";
  }

  std::string unavailable() const override {
    if (library_.api.device_count() > 0) return {};
    return cat("the plugin ", library_.path, " finds no ", library_.api.device_type, " device");
  }

 private:
  std::string name_of(int index) const {
    return cat("/physical_device:", library_.api.device_type, ':', index);
  }

  int index_of(const PhysicalDevice& physical) const {
    const int count = library_.api.device_count();
    for (int i = 0; i < count; ++i) {
      if (name_of(i) == physical.name) return i;
    }
    throw InvalidArgumentError(cat("The plugin ", library_.api.name, " has no device ",
                                   physical.name, "; it has ", count, '.'));
  }

  DeviceProperties properties_of(int index) const {
    TandemDeviceProperties given = {};
    given.size = sizeof(given);
    TandemStatus status = no_error();
    library_.api.device_properties(index, &given, &status);
    check(status, cat("The plugin ", library_.api.name, " does not know ", name_of(index)));
    check_properties(library_, name_of(index), given);
    DeviceProperties p;
    p.description.assign(given.description, strnlen(given.description, sizeof(given.description)));
    std::replace(p.description.begin(), p.description.end(), '\n', ' ');
    if (p.description.empty()) p.description = library_.api.device_type;
    p.memory_bytes = static_cast<std::size_t>(given.memory_bytes);
    p.flops = given.flops;
    p.memory_bandwidth = given.memory_bandwidth;
    p.link_bandwidth = given.link_bandwidth;
    p.link_latency = given.link_latency;
    p.launch_overhead = given.launch_overhead;
    p.compute_streams = std::max(given.compute_streams, 1);
    p.emulated = given.emulated != 0;
    p.details = {{"device_name", p.description}, {"plugin", library_.path}};
    std::istringstream lines(
        std::string(given.details, strnlen(given.details, sizeof(given.details))));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t equals = line.find('=');
      if (equals != std::string::npos) p.details[line.substr(0, equals)] = line.substr(equals + 1);
    }
    return p;
  }

  const PluginLibrary& library_;
};

}  // namespace

std::unique_ptr<Backend> load_plugin(const std::string& path) {
  return std::make_unique<PluginBackend>(open_plugin_library(path));
}

TandemDevice* plugin_handle(const Device& device) {
  const auto* plugin = dynamic_cast<const PluginDevice*>(&device);
  return plugin ? plugin->handle().get() : nullptr;
}

void lose_plugin_device(Device& device) {
  const auto* plugin = dynamic_cast<const PluginDevice*>(&device);
  const auto lose = plugin ? plugin->handle().api().device_lose : nullptr;
  if (!lose) throw UnimplementedError(cat("Device ", device.name(), " has no way to be lost."));
  lose(plugin->handle().get());
}

}  // namespace tandem
