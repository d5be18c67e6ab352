#include "tandem/runtime/device_inventory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/device/device_types.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/runtime/config/make_backends.h"
#include "tandem/runtime/config/physical_names.h"

namespace tandem {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;
constexpr std::string_view kPhysical = "/physical_device:";

// The one that said it; empty if none did.
std::string variable_of(const DeviceConfig& config, const std::string& setting) {
  constexpr std::string_view kEnvironment = "environment ";
  const std::string origin = config.origin(setting);
  return origin.starts_with(kEnvironment) ? origin.substr(kEnvironment.size()) : std::string();
}

// Errors about what the environment said name the variable.
[[noreturn]] void refuse(const DeviceConfig& config, const std::string& setting,
                         const std::string& text) {
  const std::string variable = variable_of(config, setting);
  throw InvalidArgumentError(variable.empty() ? text : cat(variable, ": ", text));
}

bool is_cpu(const DeviceInventory::Entry& entry) { return entry.device.device_type == "CPU"; }

void check_cpu(const DeviceConfig& config, const std::string& setting,
               const LogicalDeviceConfiguration& logical) {
  if (logical.memory_limit) {
    refuse(config, setting,
           "Setting memory limit on CPU virtual devices is currently not supported. Logical CPUs "
           "share the machine's memory.");
  }
  if (logical.experimental_priority) {
    refuse(config, setting,
           "Setting experimental_priority on CPU virtual  devices is currently not supported");
  }
  if (logical.experimental_device_ordinal) {
    refuse(
        config, setting,
        "Setting experimental_device_ordinal on CPU virtual  devices is currently not supported");
  }
}

void check_accelerator(const DeviceConfig& config, const std::string& setting,
                       const std::string& type, const LogicalDeviceConfiguration& logical) {
  if (!logical.memory_limit) {
    refuse(config, setting,
           cat("Setting memory limit is required for ", type,
               " virtual devices. Give each logical device a memory_limit in MiB."));
  }
  if (logical.experimental_priority || logical.experimental_device_ordinal) {
    refuse(config, setting,
           "experimental_priority and experimental_device_ordinal are not supported by any device "
           "yet. Leave them out.");
  }
}

void check_sum(const DeviceConfig& config, const std::string& setting,
               const DeviceInventory::Entry& entry, const std::vector<std::int64_t>& limits) {
  const std::size_t memory = entry.properties().memory_bytes;
  std::int64_t sum = 0;
  for (const std::int64_t limit : limits) {
    if (limit <= 0) {
      refuse(config, setting,
             cat("A memory limit must be 1 MiB or more but is ", limit, " for ", entry.short_name(),
                 "."));
    }
    if (limit > std::numeric_limits<std::int64_t>::max() / kMib - sum) {
      refuse(config, setting, cat("A memory limit of ", limit, " MiB is too large to count."));
    }
    sum += limit;
  }
  if (memory != 0 && static_cast<std::size_t>(sum) > memory / kMib) {
    refuse(config, setting,
           cat("The memory limits of ", entry.short_name(), " come to ", sum,
               " MiB, but the device has ", memory / kMib, " MiB. Lower them."));
  }
}

}  // namespace

std::string DeviceInventory::Entry::short_name() const {
  return device.name.substr(kPhysical.size());
}

DeviceInventory::DeviceInventory(const DeviceConfig& config) {
  std::vector<std::shared_ptr<Backend>> emulated = make_emulated_backends(config);
  std::vector<std::string> emulated_types;
  for (const auto& backend : emulated) {
    for (const PhysicalDevice& device : backend->physical_devices())
      emulated_types.push_back(device.device_type);
  }
  for (const auto& backend : make_backends(config)) add(backend, emulated_types);
  for (const auto& backend : config.backends) {
    if (!backend) throw InvalidArgumentError("A backend of DeviceConfig::backends is null.");
    add(backend, emulated_types);
  }
  for (const auto& backend : emulated) add(backend, {});
  std::stable_partition(devices_.begin(), devices_.end(), is_cpu);
}

void DeviceInventory::add(const std::shared_ptr<Backend>& backend,
                          const std::vector<std::string>& left_out) {
  backends_.push_back(backend);
  if (std::string why = backend->unavailable(); !why.empty())
    notes_.push_back(cat(backend->name(), ": ", why));
  std::map<std::string, int> left;
  for (PhysicalDevice& native : backend->physical_devices()) {
    const std::string type = native.device_type;
    add_device_type(type);
    if (std::find(left_out.begin(), left_out.end(), type) != left_out.end()) {
      ++left[type];
      continue;
    }
    const auto index = std::count_if(devices_.begin(), devices_.end(),
                                     [&](const Entry& e) { return e.device.device_type == type; });
    devices_.push_back({{cat(kPhysical, type, ":", index), type}, std::move(native), backend});
  }
  for (const auto& [type, count] : left) {
    notes_.push_back(cat(backend->name(), ": ", count, " ", type,
                         " not used, because devices of this type are emulated"));
  }
}

const DeviceInventory::Entry* DeviceInventory::find(std::string_view name) const {
  const std::string wanted = cat(kPhysical, physical_name(name));
  for (const Entry& entry : devices_) {
    if (entry.device.name == wanted) return &entry;
  }
  return nullptr;
}

void DeviceInventory::check_known(const DeviceConfig& config, const std::string& setting,
                                  const std::string& name) const {
  if (find(name)) return;
  std::string there;
  for (const Entry& entry : devices_) there += cat(there.empty() ? "" : ", ", entry.short_name());
  refuse(config, setting,
         cat("Unrecognized device: '", name, "'. The physical devices are ", there,
             ". The setting ", setting.substr(0, setting.find(' ')), " names it."));
}

void DeviceInventory::check_logical(const DeviceConfig& config, const Entry& entry) const {
  const std::string name = entry.short_name();
  const auto logical = config.logical.find(name);
  const auto limit = config.memory_limit.find(name);
  const std::string logical_setting = "logical " + name, limit_setting = "memory_limit " + name;
  if (limit != config.memory_limit.end()) {
    if (is_cpu(entry)) check_cpu(config, limit_setting, {.memory_limit = limit->second});
    if (logical != config.logical.end()) {
      refuse(config, logical_setting,
             cat("Device ", name, " has both logical devices (", config.origin(logical_setting),
                 ") and a memory limit of its own (", config.origin(limit_setting),
                 "). Give the limit in the logical configuration alone."));
    }
    check_sum(config, limit_setting, entry, {limit->second});
  }
  if (logical == config.logical.end()) {
    const auto of_all = config.memory_limit.find("");
    if (!is_cpu(entry) && limit == config.memory_limit.end() && of_all != config.memory_limit.end())
      check_sum(config, "memory_limit", entry, {of_all->second});
    return;
  }
  if (logical->second.empty()) {
    refuse(config, logical_setting,
           cat("The list of logical devices of ", name,
               " is empty. To hide a device, leave it out of the visible ones."));
  }
  if (logical->second.size() > DeviceConfig::kMaxLogicalDevices) {
    refuse(config, logical_setting,
           cat("Device ", name, " is to be cut into ", logical->second.size(),
               " logical devices; at most ", DeviceConfig::kMaxLogicalDevices, " can be."));
  }
  std::vector<std::int64_t> limits;
  for (const LogicalDeviceConfiguration& device : logical->second) {
    if (is_cpu(entry)) {
      check_cpu(config, logical_setting, device);
    } else {
      check_accelerator(config, logical_setting, entry.device.device_type, device);
      limits.push_back(*device.memory_limit);
    }
  }
  if (!limits.empty()) check_sum(config, logical_setting, entry, limits);
}

void DeviceInventory::check_names(const DeviceConfig& config) const {
  if (config.visible) {
    std::set<std::string> seen;
    for (const std::string& name : *config.visible) {
      check_known(config, "visible", name);
      if (!seen.insert(physical_name(name)).second)
        refuse(config, "visible", cat("Device ", name, " is listed twice among those to use."));
    }
  }
  for (const auto& [name, value] : config.logical) check_known(config, "logical " + name, name);
  for (const auto& [name, value] : config.memory_limit) {
    if (!name.empty()) check_known(config, "memory_limit " + name, name);
  }
  for (const auto& [name, value] : config.memory_growth) {
    if (name.empty()) continue;
    check_known(config, "memory_growth " + name, name);
    if (is_cpu(*find(name))) {
      refuse(config, "memory_growth " + name,
             cat("Cannot set memory growth on non-GPU and non-Pluggable devices: ", name,
                 " uses the machine's memory."));
    }
  }
}

// Like TensorFlow, which leaves growth alone once accelerators are cut.
void DeviceInventory::check_growth(const DeviceConfig& config) const {
  std::optional<bool> growth;
  for (const Entry& entry : devices_) {
    if (is_cpu(entry)) continue;
    if (config.logical.contains(entry.short_name())) return;
  }
  for (const Entry& entry : devices_) {
    if (is_cpu(entry) || !visible(config, entry)) continue;
    const bool grows = cut(config, entry).front().memory_growth;
    if (growth.value_or(grows) != grows) {
      throw InvalidArgumentError(
          "Memory growth cannot differ between GPU devices. Set it alike for every visible "
          "accelerator, or hide the others with set_visible_devices.");
    }
    growth = grows;
  }
}

// On a server where each program sees its GPU as "GPU:0" one is easily taken for another.
void DeviceInventory::report_hidden(const DeviceConfig& config) const {
  for (const Entry& entry : devices_) {
    if (visible(config, entry)) continue;
    for (const char* what : {"logical ", "memory_limit "}) {
      const std::string setting = what + entry.short_name();
      const std::string variable = variable_of(config, setting);
      if (variable.empty()) continue;
      log(LogLevel::kWarning,
          cat(variable, " names ", entry.short_name(),
              ", which is not visible: it has no effect. It takes physical devices, by the names "
              "that `td devices` gives them."));
    }
  }
}

void DeviceInventory::check(const DeviceConfig& config) const {
  if (config.log_level.value_or(0) < 0 || config.log_level.value_or(0) > 3)
    throw InvalidArgumentError(cat("The log level must be 0 to 3 but is ", *config.log_level, "."));
  // Read again where functions are placed; what is wrong with it is reported here.
  if (!config.placement_profile.value_or("").empty()) {
    try {
      CostProfile::load(*config.placement_profile);
    } catch (const Error& error) {
      const std::string variable = variable_of(config, "placement_profile");
      throw_error(error.code(),
                  cat(variable.empty() ? "placement_profile" : variable, ": ", error.what()));
    }
  }
  check_names(config);
  bool any_cpu = false;
  for (const Entry& entry : devices_) {
    any_cpu = any_cpu || (is_cpu(entry) && visible(config, entry));
    // What is said of a hidden device by name must be possible too, as when a program says it.
    const std::string name = entry.short_name();
    if (visible(config, entry) || config.logical.contains(name) ||
        config.memory_limit.contains(name))
      check_logical(config, entry);
  }
  check_growth(config);
  report_hidden(config);
  if (!any_cpu) {
    throw NotFoundError(
        "No CPU devices are available in this process. The host takes part in everything: list "
        "CPU:0 "
        "too, or give set_visible_devices a device type.");
  }
}

bool DeviceInventory::visible(const DeviceConfig& config, const Entry& entry) {
  return !config.visible || std::find(config.visible->begin(), config.visible->end(),
                                      entry.short_name()) != config.visible->end();
}

std::vector<const DeviceInventory::Entry*> DeviceInventory::used(const DeviceConfig& config) const {
  std::vector<const Entry*> used;
  for (const Entry& entry : devices_) {
    if (is_cpu(entry) && visible(config, entry)) used.push_back(&entry);
  }
  if (!config.visible || config.origin("visible") == "program") {
    for (const Entry& entry : devices_) {
      if (!is_cpu(entry) && visible(config, entry)) used.push_back(&entry);
    }
    return used;
  }
  for (const std::string& name : *config.visible) {
    const Entry* entry = find(name);
    if (!is_cpu(*entry) && std::find(used.begin(), used.end(), entry) == used.end())
      used.push_back(entry);
  }
  return used;
}

std::vector<LogicalDeviceOptions> DeviceInventory::cut(const DeviceConfig& config,
                                                       const Entry& entry) {
  const std::string name = entry.short_name();
  if (is_cpu(entry)) {
    const auto logical = config.logical.find(name);
    const bool cut = logical != config.logical.end() && !logical->second.empty();
    return std::vector<LogicalDeviceOptions>(cut ? logical->second.size() : 1);
  }
  LogicalDeviceOptions options;
  for (const std::string& key : {name, std::string()}) {
    if (const auto growth = config.memory_growth.find(key); growth != config.memory_growth.end()) {
      options.memory_growth = growth->second;
      break;
    }
  }
  if (const auto logical = config.logical.find(name);
      logical != config.logical.end() && !logical->second.empty()) {
    std::vector<LogicalDeviceOptions> all;
    for (const LogicalDeviceConfiguration& device : logical->second) {
      options.memory_limit = static_cast<std::size_t>(*device.memory_limit * kMib);
      all.push_back(options);
    }
    return all;
  }
  for (const std::string& key : {name, std::string()}) {
    if (const auto limit = config.memory_limit.find(key); limit != config.memory_limit.end()) {
      options.memory_limit = static_cast<std::size_t>(limit->second * kMib);
      break;
    }
  }
  return {options};
}

}  // namespace tandem
