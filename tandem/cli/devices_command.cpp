#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/cli/commands.h"
#include "tandem/core/error.h"
#include "tandem/core/machine.h"
#include "tandem/device/library_report.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/config/environment_names.h"
#include "tandem/runtime/device_inventory.h"
#include "tandem/runtime/runtime.h"

namespace tandem::cli {
namespace {

using Entry = DeviceInventory::Entry;

// A value in force and who set it.
struct Setting {
  std::string value;
  std::string from;
  std::string text() const { return value + " (" + from + ")"; }
  nlohmann::ordered_json json() const { return {{"value", value}, {"from", from}}; }
};

std::string memory_text(std::uint64_t bytes) {
  constexpr std::uint64_t kGib = std::uint64_t{1} << 30, kMib = std::uint64_t{1} << 20;
  if (bytes < kMib) return std::to_string(bytes) + " B";
  const bool large = bytes >= kGib;
  std::ostringstream out;
  out << std::fixed
      << std::setprecision(large               ? 1
                           : bytes % kMib == 0 ? 0
                                               : 1)
      << static_cast<double>(bytes) / static_cast<double>(large ? kGib : kMib)
      << (large ? " GiB" : " MiB");
  return std::move(out).str();
}

// Bytes that a logical device may use, and who said so.
struct Memory {
  std::uint64_t bytes = 0;
  std::string from;
};
Memory memory_of(const DeviceConfig& config, Device& device, const Entry& entry) {
  const std::string name = entry.short_name();
  if (device.type() == "CPU") {
    const ResourceLimits& machine = machine_limits();
    return {machine.memory, machine.memory_from_cgroup ? "the container's" : "the machine's"};
  }
  const std::uint64_t limit = device.allocator().stats().limit;
  const std::uint64_t bytes = limit != 0 ? limit : device.properties().memory_bytes;
  if (const auto cut = config.logical.find(name); cut != config.logical.end())
    return {bytes, config.origin("logical " + name)};
  const std::string from = config.origin("memory_limit " + name);
  return {bytes, from == "default" ? "the device's" : from};
}

// The settings of a logical device, in the order in which they are reported.
using Settings = std::vector<std::pair<std::string, Setting>>;
Settings settings_of(const Runtime& runtime, const Device& device, const Entry& entry) {
  const DeviceConfig& config = runtime.device_config();
  const std::string name = entry.short_name();
  if (device.type() == "CPU") {
    return {{"intra_op_threads", {std::to_string(runtime.intra_op_pool().threads()), "default"}},
            {"inter_op_threads", {std::to_string(runtime.inter_op_pool().threads()), "default"}}};
  }
  const bool growth = DeviceInventory::cut(config, entry).front().memory_growth;
  return {{"memory_growth", {growth ? "on" : "off", config.origin("memory_growth " + name)}}};
}

// A profile implies the policy.
std::string policy_origin(const DeviceConfig& config) {
  const bool implied = !config.placement && !config.placement_profile.value_or("").empty();
  return config.origin(implied ? "placement_profile" : "placement");
}

Settings settings_of(const Runtime& runtime) {
  const DeviceConfig& config = runtime.device_config();
  const auto on = [](bool flag) { return flag ? "on" : "off"; };
  const bool cost = runtime.placement_policy() == PlacementPolicy::kCost;
  Settings all = {
      {"soft_placement", {on(runtime.soft_placement()), config.origin("soft_placement")}},
      {"log_device_placement", {on(runtime.log_placement()), config.origin("log_placement")}},
      {"placement", {cost ? "cost" : "greedy", policy_origin(config)}},
      {"log_level", {std::to_string(config.log_level.value_or(0)), config.origin("log_level")}}};
  if (const std::string profile = runtime.placement_profile(); !profile.empty())
    all.push_back({"placement_profile", {profile, config.origin("placement_profile")}});
  std::string plugins;
  for (const std::string& path : config.plugins) plugins += (plugins.empty() ? "" : " ") + path;
  if (!plugins.empty()) all.push_back({"plugins", {plugins, config.origin("plugins")}});
  for (const auto& [name, nearest] : unknown_variables()) {
    all.push_back(
        {name,
         {"unknown", nearest.empty() ? "it has no effect" : "did you mean " + nearest + "?"}});
  }
  // The driver obeys it by itself; it is shown because it hides devices from everything here.
  if (const char* cuda = std::getenv("CUDA_VISIBLE_DEVICES"))
    all.push_back({"CUDA_VISIBLE_DEVICES", {cuda, "environment CUDA_VISIBLE_DEVICES"}});
  return all;
}

std::string words(std::string name) {
  if (name.starts_with("CUDA") || name.starts_with("TANDEM")) return name;
  for (char& c : name) c = c == '_' ? ' ' : c;
  return name;
}

const Entry& entry_of(const Runtime& runtime, const Device& device) {
  return *runtime.inventory().find(runtime.physical_device(device).name);
}

// Where the physical device comes from: emulated ones were asked for, others their backend found.
std::string origin_of(const DeviceConfig& config, const Entry& entry) {
  const std::string backend = entry.backend->name();
  return backend == "emulated" ? config.origin("emulate") : backend;
}

nlohmann::ordered_json json_of(const Settings& settings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, setting] : settings) json[name] = setting.json();
  return json;
}

// What planning knows of an accelerator; nothing of a CPU.
nlohmann::ordered_json speed_json(const Entry& entry, const DeviceProperties& p) {
  if (entry.device.device_type == "CPU") return nlohmann::ordered_json::object();
  nlohmann::ordered_json json = {{"streams", p.compute_streams}};
  if (p.link_bandwidth > 0) {
    json["link_bytes_per_second"] = p.link_bandwidth;
    json["latency_seconds"] = p.link_latency;
  }
  if (p.flops > 0) json["flops"] = p.flops;
  if (p.memory_bandwidth > 0) json["memory_bytes_per_second"] = p.memory_bandwidth;
  return json;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What the devices' libraries are, once for all devices of a backend.
std::vector<std::string> library_lines(const Runtime& runtime) {
  std::vector<std::string> all;
  for (const Entry& entry : runtime.inventory().devices()) {
    for (const std::string& line : lines_of(libraries_of(*entry.backend))) {
      if (std::find(all.begin(), all.end(), line) == all.end()) all.push_back(line);
    }
  }
  return all;
}

void print_json(const Runtime& runtime) {
  const DeviceConfig& config = runtime.device_config();
  auto list = nlohmann::ordered_json::array();
  const nlohmann::ordered_json general = json_of(settings_of(runtime));
  for (const auto& device : runtime.devices()) {
    const Entry& entry = entry_of(runtime, *device);
    const Memory memory = memory_of(config, *device, entry);
    nlohmann::ordered_json settings = {{"memory", {{"from", memory.from}}}};
    settings.update(json_of(settings_of(runtime, *device, entry)));
    settings.update(general);
    list.push_back({{"name", device->name()},
                    {"kind", "logical"},
                    {"type", device->type()},
                    {"physical", entry.device.name},
                    {"kernel_class", device->kernel_class()},
                    {"description", device->properties().description},
                    {"emulated", device->properties().emulated},
                    {"memory_bytes", memory.bytes},
                    {"settings", settings}});
  }
  for (const Entry& entry : runtime.inventory().devices()) {
    const DeviceProperties properties = entry.properties();
    list.push_back({{"name", entry.device.name},
                    {"kind", "physical"},
                    {"type", entry.device.device_type},
                    {"backend", entry.backend->name()},
                    {"description", properties.description},
                    {"emulated", properties.emulated},
                    {"memory_bytes", properties.memory_bytes},
                    {"visible", DeviceInventory::visible(config, entry)},
                    {"speed", speed_json(entry, properties)},
                    {"details", properties.details},
                    {"libraries", lines_of(libraries_of(*entry.backend))},
                    {"settings",
                     {{"visible", {{"from", config.origin("visible")}}},
                      {"device", {{"from", origin_of(config, entry)}}}}}});
  }
  std::cout << list.dump(2) << '\n';
}

using Row = std::vector<std::string>;

// Columns, two blanks apart.
void print_rows(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths[i] != 0) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    line.resize(line.find_last_not_of(' ') + 1);
    std::cout << line << '\n';
  }
}

// Three digits, or all of a whole number that has more. A figure that was not measured may have an
// exponent.
std::string digits(double value) {
  std::ostringstream out;
  if (value >= 999.5 && value < 1e9) {
    out << std::fixed << std::setprecision(0);
  } else {
    out << std::setprecision(3);
  }
  out << value;
  return std::move(out).str();
}

// "12 GB/s", "1.5 Tflop/s".
std::string rate_text(double rate, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "K", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  for (; rate >= 999.5 && prefix + 1 < std::size(kPrefixes); ++prefix) rate /= 1000;
  return digits(rate) + ' ' + kPrefixes[prefix] + unit;
}

std::string time_text(double seconds) {
  if (seconds >= 0.9995) return digits(seconds) + " s";
  if (seconds >= 0.9995e-3) return digits(seconds * 1e3) + " ms";
  if (seconds >= 0.9995e-6 || seconds == 0) return digits(seconds * 1e6) + " us";
  return digits(seconds * 1e9) + " ns";
}

// What planning knows of an accelerator; what it does not say is left out, and the link of
// emulated ones, which stands in their description.
Row speed_of(const DeviceProperties& p) {
  return {cat("streams ", p.compute_streams),
          p.link_bandwidth > 0 && !p.emulated ? "link " + rate_text(p.link_bandwidth, "B/s") : "",
          p.link_bandwidth > 0 ? "latency " + time_text(p.link_latency) : "",
          p.flops > 0 ? rate_text(p.flops, "flop/s") : "",
          p.memory_bandwidth > 0 ? "memory " + rate_text(p.memory_bandwidth, "B/s") : ""};
}

Row logical_row(const Runtime& runtime, Device& device) {
  const Entry& entry = entry_of(runtime, device);
  const Memory memory = memory_of(runtime.device_config(), device, entry);
  std::string settings;
  if (device.type() == "CPU") {
    settings = cat("threads ", runtime.intra_op_pool().threads(), " intra-op (default), ",
                   runtime.inter_op_pool().threads(), " inter-op (default)");
  } else {
    for (const auto& [name, setting] : settings_of(runtime, device, entry))
      settings += words(name) + ' ' + setting.text();
  }
  return {device.name(),
          device.type(),
          "memory " + memory_text(memory.bytes) + " (" + memory.from + ")",
          settings,
          "on " + entry.short_name(),
          entry.properties().emulated ? "emulated" : ""};
}

Row physical_row(const DeviceConfig& config, const Entry& entry) {
  const DeviceProperties properties = entry.properties();
  const bool visible = DeviceInventory::visible(config, entry);
  const bool silent =
      properties.emulated && properties.description.find("emulated") == std::string::npos;
  Row row{entry.device.name, entry.device.device_type,
          "memory " + memory_text(properties.memory_bytes) + " (" + origin_of(config, entry) + ")",
          (visible ? "visible (" : "not visible (") + config.origin("visible") + ")"};
  if (entry.device.device_type != "CPU") {
    const Row speed = speed_of(properties);
    row.insert(row.end(), speed.begin(), speed.end());
  } else {
    row.resize(row.size() + 5);
  }
  row.push_back((silent ? "emulated  " : "") + properties.description);
  return row;
}

void print_lines(const Runtime& runtime) {
  std::vector<Row> logical, physical;
  for (const auto& device : runtime.devices()) logical.push_back(logical_row(runtime, *device));
  for (const Entry& entry : runtime.inventory().devices())
    physical.push_back(physical_row(runtime.device_config(), entry));
  print_rows(logical);
  print_rows(physical);
  const char* separator = "";
  for (const auto& [name, setting] : settings_of(runtime)) {
    std::cout << separator << words(name) << ' ' << setting.text();
    separator = "  ";
  }
  std::cout << '\n';
  for (const std::string& note : runtime.inventory().notes()) std::cout << note << '\n';
  for (const std::string& line : library_lines(runtime)) std::cout << line << '\n';
}

}  // namespace

void run_devices(const DevicesArguments& arguments) {
  if (arguments.json) {
    print_json(Runtime::current());
  } else {
    print_lines(Runtime::current());
  }
}

}  // namespace tandem::cli
