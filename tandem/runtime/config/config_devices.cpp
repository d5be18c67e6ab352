#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/runtime/config.h"
#include "tandem/runtime/config/configured.h"
#include "tandem/runtime/config/make_backends.h"
#include "tandem/runtime/device_inventory.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/runtime.h"

namespace tandem::config {
namespace {

using Entry = DeviceInventory::Entry;

// True if both lead to the same devices.
bool same_devices(const DeviceConfig& a, const DeviceConfig& b, const DeviceInventory& inventory) {
  if (emulated_specs(a) != emulated_specs(b) || a.plugins != b.plugins || a.backends != b.backends)
    return false;
  return std::all_of(
      inventory.devices().begin(), inventory.devices().end(), [&](const Entry& entry) {
        const auto cut_a = DeviceInventory::cut(a, entry), cut_b = DeviceInventory::cut(b, entry);
        return DeviceInventory::visible(a, entry) == DeviceInventory::visible(b, entry) &&
               std::equal(cut_a.begin(), cut_a.end(), cut_b.begin(), cut_b.end(),
                          [](const LogicalDeviceOptions& x, const LogicalDeviceOptions& y) {
                            return x.memory_limit == y.memory_limit &&
                                   x.memory_growth == y.memory_growth;
                          });
      });
}

// Lets `change` alter the program's configuration of the default runtime, or, once the runtime
// runs, makes sure that it would alter nothing.
void configure(const char* call, const char* refusal,
               const std::function<void(DeviceConfig&, const Devices&)>& change) {
  if (!running() && default_options().change_devices(change)) return;
  const Devices now = devices_now();
  DeviceConfig wanted = now.config;
  change(wanted, now);
  if (same_devices(wanted, now.config, *now.inventory)) return;
  throw FailedPreconditionError(
      cat(refusal, " Call ", call,
          " before the first op and before list_logical_devices, which start the runtime, or make "
          "a td::Runtime of your own with these devices."));
}

const Entry& entry_of(const DeviceInventory& inventory, const DeviceArgument& device) {
  const Entry* entry = nullptr;
  try {
    entry = inventory.find(device.name());
  } catch (const InvalidArgumentError&) {
    // What is no name of a physical device is reported below.
  }
  if (entry) return *entry;
  std::string there;
  for (const Entry& e : inventory.devices())
    there += cat(there.empty() ? "" : ", ", e.short_name());
  throw InvalidArgumentError(
      cat("Unrecognized device: ", device.text(), ". list_physical_devices has ", there, "."));
}

void check_one(const DeviceConfig& given, const Devices& now, const Entry& entry) {
  DeviceConfig of_device;  // of this device alone: other settings may still change
  of_device.logical = given.logical;
  of_device.memory_limit = given.memory_limit;
  now.inventory->check_logical(of_device, entry);
}

// Types are written in upper case and asked for in any, as in names of devices.
bool same_type(std::string_view type, std::string_view asked) {
  return std::equal(type.begin(), type.end(), asked.begin(), asked.end(),
                    [](unsigned char a, unsigned char b) { return a == std::toupper(b); });
}

Device& logical_device(std::string_view name) {
  DeviceSpec spec;
  try {
    spec = DeviceSpec::parse(name);
  } catch (const InvalidArgumentError&) {
    spec = {};
  }
  if (!spec.type || !spec.index) {
    throw InvalidArgumentError(cat("Failed parsing device name: '", name,
                                   "'. Note a valid device string should at least contain a device "
                                   "type and a device index, like \"GPU:0\"."));
  }
  std::string there;
  for (const auto& device : Runtime::current().devices()) {
    if (spec.matches(device->spec())) return *device;
    there += cat(there.empty() ? "" : ", ", device->name());
  }
  throw InvalidArgumentError(
      cat("No matching devices found for '", name, "'. The logical devices are ", there, "."));
}

}  // namespace

DeviceArgument::DeviceArgument(const PhysicalDevice& device)
    : name_(device.name),
      text_(cat("PhysicalDevice(name='", device.name, "', device_type='", device.device_type,
                "')")) {}
DeviceArgument::DeviceArgument(std::string name)
    : name_(std::move(name)), text_(cat("'", name_, "'")) {}

DeviceArguments::DeviceArguments(const std::vector<PhysicalDevice>& devices)
    : devices_(devices.begin(), devices.end()) {}

std::vector<PhysicalDevice> list_physical_devices(StringView type) {
  std::vector<PhysicalDevice> found;
  for (const Entry& entry : devices_now().inventory->devices()) {
    if (type.empty() || same_type(entry.device.device_type, type)) found.push_back(entry.device);
  }
  return found;
}

std::vector<LogicalDevice> list_logical_devices(StringView type) {
  std::vector<LogicalDevice> found;
  const Runtime& runtime = Runtime::current();
  for (const auto& device : runtime.devices()) {
    if (!type.empty() && !same_type(device->type(), type)) continue;
    DeviceSpec local;  // without job and task, as long as there is one process
    local.type = device->spec().type;
    local.index = device->spec().index;
    found.push_back({local.to_string(), device->type(), runtime.physical_device(*device).name});
  }
  return found;
}

void set_visible_devices(const DeviceArguments& devices, StringView type) {
  configure("set_visible_devices", "Visible devices cannot be modified after being initialized.",
            [&](DeviceConfig& config, const Devices& now) {
              std::set<std::string> wanted;
              for (const DeviceArgument& device : devices.devices()) {
                const Entry& entry = entry_of(*now.inventory, device);
                if (!type.empty() && !same_type(entry.device.device_type, type)) {
                  throw InvalidArgumentError(cat("Unrecognized device: ", device.text(),
                                                 ". It is not of the type '", type,
                                                 "' that set_visible_devices was given."));
                }
                wanted.insert(entry.short_name());
              }
              std::vector<std::string> visible;
              for (const Entry& entry : now.inventory->devices()) {
                const bool kept = !type.empty() && !same_type(entry.device.device_type, type) &&
                                  DeviceInventory::visible(now.config, entry);
                if (kept || wanted.contains(entry.short_name()))
                  visible.push_back(entry.short_name());
              }
              config.visible = std::move(visible);
            });
}

std::vector<PhysicalDevice> get_visible_devices(StringView type) {
  const Devices now = devices_now();
  std::vector<PhysicalDevice> found;
  for (const Entry& entry : now.inventory->devices()) {
    if ((type.empty() || same_type(entry.device.device_type, type)) &&
        DeviceInventory::visible(now.config, entry))
      found.push_back(entry.device);
  }
  return found;
}

void set_memory_growth(const DeviceArgument& device, bool enable) {
  configure("set_memory_growth", "Physical devices cannot be modified after being initialized.",
            [&](DeviceConfig& config, const Devices& now) {
              const Entry& entry = entry_of(*now.inventory, device);
              if (now.config.logical.contains(entry.short_name())) {
                throw InvalidArgumentError(
                    "Cannot set memory growth on device when virtual devices configured. Call "
                    "set_memory_growth before set_logical_device_configuration, or use "
                    "set_memory_limit, which leaves it one device.");
              }
              if (entry.device.device_type == "CPU") {
                throw InvalidArgumentError(
                    cat("Cannot set memory growth on non-GPU and non-Pluggable devices: ",
                        entry.short_name(), " uses the machine's memory."));
              }
              config.memory_growth[entry.short_name()] = enable;
            });
}

std::optional<bool> get_memory_growth(const DeviceArgument& device) {
  const Devices now = devices_now();
  const Entry& entry = entry_of(*now.inventory, device);
  if (entry.device.device_type == "CPU")
    throw NotFoundError(cat(device.text(), " has no memory growth: the CPU uses the machine's."));
  for (const std::string& key : {entry.short_name(), std::string()}) {
    const auto found = now.config.memory_growth.find(key);
    if (found != now.config.memory_growth.end()) return found->second;
  }
  return std::nullopt;
}

void set_logical_device_configuration(
    const DeviceArgument& device, const std::vector<LogicalDeviceConfiguration>& logical_devices) {
  configure("set_logical_device_configuration",
            "Virtual devices cannot be modified after being initialized.",
            [&](DeviceConfig& config, const Devices& now) {
              const Entry& entry = entry_of(*now.inventory, device);
              config.logical[entry.short_name()] = logical_devices;
              check_one(config, now, entry);
            });
}

std::optional<std::vector<LogicalDeviceConfiguration>> get_logical_device_configuration(
    const DeviceArgument& device) {
  const Devices now = devices_now();
  const auto found = now.config.logical.find(entry_of(*now.inventory, device).short_name());
  if (found == now.config.logical.end()) return std::nullopt;
  return found->second;
}

void set_virtual_device_configuration(
    const DeviceArgument& device, const std::vector<LogicalDeviceConfiguration>& logical_devices) {
  set_logical_device_configuration(device, logical_devices);
}

std::optional<std::vector<LogicalDeviceConfiguration>> get_virtual_device_configuration(
    const DeviceArgument& device) {
  return get_logical_device_configuration(device);
}

void set_memory_limit(const DeviceArgument& device, std::optional<std::int64_t> mebibytes) {
  configure("set_memory_limit", "Physical devices cannot be modified after being initialized.",
            [&](DeviceConfig& config, const Devices& now) {
              const Entry& entry = entry_of(*now.inventory, device);
              const std::string name = entry.short_name();
              if (mebibytes) {
                config.memory_limit[name] = *mebibytes;
                check_one(config, now, entry);
              } else if (!config.from.contains("memory_limit " + name)) {
                config.memory_limit.erase(name);
              }
            });
}

namespace {

// The statistics of its memory are reset with what lay in it.
void check_not_lost(const char* call, const Device& device) {
  const std::string why = device.lost();
  if (why.empty()) return;
  throw UnavailableError(
      cat(call, ": ", device.name(), " is lost: ", why,
          ". What lay in its memory is gone. Ask for another device; a new td::Runtime takes up "
          "this one again, if it works."));
}

}  // namespace

MemoryInfo get_memory_info(StringView device) {
  Device& found = logical_device(device);
  check_not_lost("get_memory_info", found);
  settle(found);
  const MemoryStats stats = found.allocator().stats();
  return {.current = stats.current, .peak = stats.peak};
}
void reset_memory_stats(StringView device) {
  Device& found = logical_device(device);
  check_not_lost("reset_memory_stats", found);
  settle(found);
  found.allocator().reset_peak();
}

std::map<std::string, std::string> get_device_details(const DeviceArgument& device) {
  const Devices now = devices_now();
  const Entry& entry = entry_of(*now.inventory, device);
  std::map<std::string, std::string> details = entry.properties().details;
  if (!running()) return details;
  const Runtime& runtime = Runtime::current();
  for (const auto& logical : runtime.devices()) {
    const std::string why = logical->lost();
    if (!why.empty() && runtime.physical_device(*logical).name == entry.device.name)
      details["lost"] = why;
  }
  return details;
}

void emulate(const String& specs) {
  configure("emulate", "Emulated devices cannot be modified after being initialized.",
            [&](DeviceConfig& config, const Devices&) {
              config.emulate = {specs};
              const DeviceInventory valid(DeviceConfig{.emulate = config.emulate});
            });
}

void load_plugin(const String& path) {
  configure("load_plugin", "Plugins cannot be loaded after being initialized.",
            [&](DeviceConfig& config, const Devices& now) {
              const auto& loaded = now.config.plugins;
              if (std::find(loaded.begin(), loaded.end(), path) != loaded.end()) return;
              config.plugins.push_back(path);
              const DeviceInventory valid(DeviceConfig{.plugins = config.plugins});
            });
}

void add_backend(std::shared_ptr<Backend> backend) {
  if (!backend) throw InvalidArgumentError("add_backend was given no backend.");
  configure("add_backend", "Backends cannot be added after being initialized.",
            [&](DeviceConfig& config, const Devices&) {
              auto& backends = config.backends;
              if (std::find(backends.begin(), backends.end(), backend) == backends.end())
                backends.push_back(backend);
            });
}

}  // namespace tandem::config
