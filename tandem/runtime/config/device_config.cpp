#include "tandem/runtime/device_config.h"

#include "tandem/core/error.h"
#include "tandem/runtime/config/device_environment.h"
#include "tandem/runtime/config/physical_names.h"

namespace tandem {
namespace {

template <class Value>
std::map<std::string, Value> with_short_names(const std::map<std::string, Value>& given) {
  std::map<std::string, Value> named;
  for (const auto& [name, value] : given) {
    const std::string short_name = name.empty() ? name : physical_name(name);
    if (!named.emplace(short_name, value).second) {
      throw InvalidArgumentError(cat("Device ", short_name,
                                     " is configured twice, under two spellings of its name. Say "
                                     "all that concerns it in one entry."));
    }
  }
  return named;
}

// The key in `from` of what is in force for the setting; empty if nothing is.
std::string in_force(const DeviceConfig& config, std::string_view setting) {
  const std::size_t blank = setting.find(' ');
  const std::string what(setting.substr(0, blank));
  const std::string device(blank == std::string_view::npos ? "" : setting.substr(blank + 1));
  const auto single = [&](bool set) { return set ? what : std::string(); };
  const auto of_device = [&](const auto& map) {
    if (!device.empty() && map.contains(device)) return cat(what, " ", device);
    return single(map.contains(""));
  };
  if (what == "emulate") return single(!config.emulate.empty());
  if (what == "plugins") return single(!config.plugins.empty());
  if (what == "backends") return single(!config.backends.empty());
  if (what == "visible") return single(config.visible.has_value());
  if (what == "logical") return of_device(config.logical);
  if (what == "memory_limit") return of_device(config.memory_limit);
  if (what == "memory_growth") return of_device(config.memory_growth);
  if (what == "soft_placement") return single(config.soft_placement.has_value());
  if (what == "log_placement") return single(config.log_placement.has_value());
  if (what == "synchronous") return single(config.synchronous.has_value());
  if (what == "placement") return single(config.placement.has_value());
  if (what == "placement_profile") return single(config.placement_profile.has_value());
  if (what == "log_level") return single(config.log_level.has_value());
  throw InvalidArgumentError(cat("There is no device setting '", setting, "'."));
}

}  // namespace

std::string DeviceConfig::origin(std::string_view setting) const {
  const std::string key = in_force(*this, setting);
  if (key.empty()) return "default";
  const auto found = from.find(key);
  return found == from.end() ? "program" : found->second;
}

DeviceConfig DeviceConfig::with_environment(DeviceConfig given) {
  if (given.visible) {
    for (std::string& name : *given.visible) name = physical_name(name);
  }
  given.logical = with_short_names(given.logical);
  given.memory_limit = with_short_names(given.memory_limit);
  given.memory_growth = with_short_names(given.memory_growth);
  read_environment(given);
  return given;
}

}  // namespace tandem
