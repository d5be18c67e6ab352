#include "tandem/runtime/config/device_environment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/config/environment_names.h"
#include "tandem/runtime/config/physical_names.h"

namespace tandem {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// The pieces between the separators, trimmed.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

// One variable and its value, empty if it is not set.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) {
    if (!is_known_variable(name)) throw InternalError(cat(name, " is in no list of variables"));
    if (const char* text = std::getenv(name)) text_ = trimmed(text);
  }
  explicit operator bool() const { return !text_.empty(); }
  std::string_view text() const { return text_; }
  std::string origin() const { return cat("environment ", name_); }

  [[noreturn]] void refuse(const std::string& wanted) const {
    throw InvalidArgumentError(cat(name_, " must be ", wanted, " but is '", text_, "'."));
  }
  bool flag() const {
    if (text_ != "0" && text_ != "1") refuse("0 or 1");
    return text_ == "1";
  }
  std::int64_t number(std::string_view text, const std::string& wanted) const {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value <= 0) refuse(wanted);
    return value;
  }
  std::string device(std::string_view text, const std::string& wanted) const {
    try {
      return physical_name(text);
    } catch (const InvalidArgumentError&) {
      refuse(wanted);
    }
  }

 private:
  const char* name_;
  std::string_view text_;
};

void read_lists(DeviceConfig& config) {
  if (const Variable emulate("TANDEM_EMULATE"); emulate && config.emulate.empty()) {
    config.emulate = {std::string(emulate.text())};
    config.from["emulate"] = emulate.origin();
  }
  // Those of the program come on top.
  if (const Variable plugins("TANDEM_PLUGINS"); plugins) {
    if (config.plugins.empty()) config.from["plugins"] = plugins.origin();
    std::vector<std::string> paths;
    for (const std::string_view path : split(plugins.text(), ':')) {
      if (path.empty()) plugins.refuse("paths of shared libraries with ':' between them");
      paths.emplace_back(path);
    }
    for (std::string& path : config.plugins) {
      if (std::find(paths.begin(), paths.end(), path) == paths.end())
        paths.push_back(std::move(path));
    }
    config.plugins = std::move(paths);
  }
}

void read_visible(DeviceConfig& config) {
  const Variable variable("TANDEM_VISIBLE_DEVICES");
  if (!variable) return;
  std::vector<std::string> names;
  if (variable.text() != "none") {
    const char* const wanted =
        "physical devices, each once, with ',' between them, such as \"GPU:0,CPU:0\", or \"none\"";
    for (const std::string_view text : split(variable.text(), ',')) {
      names.push_back(variable.device(text, wanted));
      if (std::count(names.begin(), names.end(), names.back()) > 1) variable.refuse(wanted);
    }
  }
  if (config.visible) return;
  // The host takes part in everything, so a list of accelerators does not hide it.
  if (std::find(names.begin(), names.end(), "CPU:0") == names.end()) names.push_back("CPU:0");
  config.visible = std::move(names);
  config.from["visible"] = variable.origin();
}

// Both of DEVICE=NUMBERS, with each device at most once.
struct Entry {
  std::string device;
  std::vector<std::int64_t> numbers;
};
Entry read_entry(const Variable& variable, std::string_view text, const std::string& wanted,
                 std::vector<std::string>& seen) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) variable.refuse(wanted);
  Entry entry;
  entry.device = variable.device(trimmed(text.substr(0, equals)), wanted);
  for (const std::string_view number : split(text.substr(equals + 1), ','))
    entry.numbers.push_back(variable.number(number, wanted));
  if (std::find(seen.begin(), seen.end(), entry.device) != seen.end())
    variable.refuse(cat(wanted, " each device once,"));
  seen.push_back(entry.device);
  return entry;
}

void read_logical(DeviceConfig& config, const DeviceConfig& program) {
  const Variable variable("TANDEM_LOGICAL_DEVICES");
  if (!variable) return;
  const char* const wanted =
      "the MiB of each logical device, for the CPU their number, such as "
      "\"GPU:0=512,512;CPU:0=2\",";
  std::vector<std::string> seen;
  for (const std::string_view text : split(variable.text(), ';')) {
    const Entry entry = read_entry(variable, text, wanted, seen);
    std::vector<LogicalDeviceConfiguration> devices;
    if (entry.device.starts_with("CPU:")) {
      if (entry.numbers.size() != 1) variable.refuse(wanted);
      if (entry.numbers[0] > DeviceConfig::kMaxLogicalDevices) {
        variable.refuse(
            cat("at most ", DeviceConfig::kMaxLogicalDevices, " logical devices of a CPU,"));
      }
      devices.resize(static_cast<std::size_t>(entry.numbers[0]));
    } else {
      for (const std::int64_t mib : entry.numbers) devices.push_back({.memory_limit = mib});
    }
    if (program.logical.contains(entry.device) || program.memory_limit.contains(entry.device))
      continue;
    config.logical[entry.device] = std::move(devices);
    config.from["logical " + entry.device] = variable.origin();
  }
}

void read_memory_limits(DeviceConfig& config, const DeviceConfig& program) {
  const Variable variable("TANDEM_MEMORY_LIMIT_MB");
  if (!variable) return;
  const char* const wanted =
      "MiB for all accelerators, such as \"1024\", or \"GPU:0=1024;GPU:1=512\",";
  const auto put = [&](const std::string& device, std::int64_t mib) {
    if (program.memory_limit.contains(device) || program.logical.contains(device)) return;
    config.memory_limit[device] = mib;
    config.from[device.empty() ? "memory_limit" : "memory_limit " + device] = variable.origin();
  };
  if (variable.text().find('=') == std::string_view::npos)
    return put("", variable.number(variable.text(), wanted));
  std::vector<std::string> seen;
  for (const std::string_view text : split(variable.text(), ';')) {
    const Entry entry = read_entry(variable, text, wanted, seen);
    if (entry.numbers.size() != 1) variable.refuse(wanted);
    put(entry.device, entry.numbers[0]);
  }
}

template <class Value>
void fill(DeviceConfig& config, std::optional<Value>& field, const char* setting,
          const Variable& variable, Value value) {
  if (field) return;
  field = value;
  config.from[setting] = variable.origin();
}

void read_flags(DeviceConfig& config) {
  if (const Variable growth("TANDEM_MEMORY_GROWTH"); growth) {
    const bool on = growth.flag();
    if (config.memory_growth.emplace("", on).second) config.from["memory_growth"] = growth.origin();
  }
  if (const Variable soft("TANDEM_SOFT_PLACEMENT"); soft)
    fill(config, config.soft_placement, "soft_placement", soft, soft.flag());
  if (const Variable log("TANDEM_LOG_DEVICE_PLACEMENT"); log)
    fill(config, config.log_placement, "log_placement", log, log.flag());
  if (const Variable policy("TANDEM_PLACEMENT"); policy) {
    if (policy.text() != "greedy" && policy.text() != "cost") policy.refuse("greedy or cost");
    fill(config, config.placement, "placement", policy,
         policy.text() == "cost" ? PlacementPolicy::kCost : PlacementPolicy::kGreedy);
  }
  if (const Variable profile("TANDEM_PLACEMENT_PROFILE"); profile) {
    fill(config, config.placement_profile, "placement_profile", profile,
         std::string(profile.text()));
  }
  if (const Variable level("TANDEM_LOG_LEVEL"); level) {
    if (level.text().size() != 1 || level.text() < "0" || level.text() > "3")
      level.refuse("0 (everything is logged), 1 (warnings and errors), 2 (errors) or 3 (nothing)");
    fill(config, config.log_level, "log_level", level, level.text()[0] - '0');
  }
}

}  // namespace

void read_environment(DeviceConfig& config) {
  const DeviceConfig program = config;
  read_lists(config);
  read_visible(config);
  read_logical(config, program);
  read_memory_limits(config, program);
  read_flags(config);
}

}  // namespace tandem
