#include "tandem/placement/cost_profile.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/placement/device_set.h"
#include "tandem/placement/internal/json_reason.h"

namespace tandem {
namespace {

constexpr int kVersion = 1;

using nlohmann::json;

// Attributes that say who a node is, not what it computes.
bool names_only(std::string_view attr) {
  return attr == "shared_name" || attr == "container" || (!attr.empty() && attr.front() == '_');
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw InvalidArgumentError(cat(path, ": no cost profile: ", what));
}

const json& field(const json& object, const char* name, const std::string& path,
                  const std::string& where) {
  const auto it = object.find(name);
  if (it == object.end()) fail(path, cat(where, " has no field '", name, "'"));
  return *it;
}

double time_of(const json& value, const std::string& path, const std::string& where) {
  if (!value.is_number()) fail(path, cat(where, " must be a number of seconds"));
  const double seconds = value.get<double>();
  if (!std::isfinite(seconds) || seconds < 0) fail(path, cat(where, " must not be negative"));
  return seconds;
}

std::string text_of(const json& value, const std::string& path, const std::string& where) {
  if (!value.is_string()) fail(path, cat(where, " must be a text"));
  return value.get<std::string>();
}

json parse(const std::string& text, const std::string& path) {
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    fail(path, json_reason(error));
  }
}

}  // namespace

CostProfile::CostProfile(CostProfile&& other) noexcept {
  const std::lock_guard lock(other.mutex_);
  times_ = std::move(other.times_);
}

std::string CostProfile::key(const Node& node) {
  std::string key = node.op().name;
  key += '(';
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Output& in = node.inputs()[i];
    if (i > 0) key += ',';
    if (in.node) key += cat(in.node->output_dtype(in.index), in.node->output_shape(in.index));
  }
  key += ')';
  for (const auto& [name, value] : node.attrs()) {
    const AttrDef* def = node.op().find_attr(name);
    if (names_only(name) || (def && (def->inferred || value == def->default_value))) continue;
    if (value.get_if<std::shared_ptr<const Array>>()) continue;  // a constant's elements
    key += cat(' ', name, '=', value.to_string());
  }
  return key;
}

std::string CostProfile::kind(const DeviceModel& device) {
  return device.spec.type.value_or(std::string());
}

void CostProfile::add(std::string_view key, std::string_view device_kind, double seconds) {
  const std::lock_guard lock(mutex_);
  Times& times = times_[std::string(key)][std::string(device_kind)];
  if (times.count == 0) {
    times.first = seconds;
  } else {
    times.sum += seconds;
  }
  ++times.count;
}

std::optional<double> CostProfile::seconds(std::string_view key,
                                           std::string_view device_kind) const {
  const std::lock_guard lock(mutex_);
  const auto devices = times_.find(key);
  if (devices == times_.end()) return std::nullopt;
  const auto it = devices->second.find(device_kind);
  if (it == devices->second.end()) return std::nullopt;
  const Times& times = it->second;
  return times.count == 1 ? times.first : times.sum / static_cast<double>(times.count - 1);
}

std::size_t CostProfile::size() const {
  const std::lock_guard lock(mutex_);
  std::size_t n = 0;
  for (const auto& [key, devices] : times_) n += devices.size();
  return n;
}

void CostProfile::save(const std::string& path) const {
  json entries = json::array();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, devices] : times_) {
      for (const auto& [device, times] : devices) {
        entries.push_back({{"op", key},
                           {"device", device},
                           {"first", times.first},
                           {"sum", times.sum},
                           {"count", times.count}});
      }
    }
  }
  const json file = {{"tandem_cost_profile", kVersion}, {"times", std::move(entries)}};
  constexpr auto kReplace = json::error_handler_t::replace;  // names need not be UTF-8
  fs::write_file(path, file.dump(1, ' ', false, kReplace) + "\n");
}

CostProfile CostProfile::load(const std::string& path) {
  const json file = parse(fs::read_file(path), path);
  if (!file.is_object() || !file.contains("tandem_cost_profile"))
    fail(path, "a recording's costs().save(path) writes one");
  if (field(file, "tandem_cost_profile", path, "the file") != kVersion) {
    fail(path,
         cat("version ", file["tandem_cost_profile"].dump(), " where ", kVersion, " is expected"));
  }
  const json& entries = field(file, "times", path, "the file");
  if (!entries.is_array()) fail(path, "'times' must be a list");
  CostProfile profile;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string where = cat("times[", i, "]");
    const json& entry = entries[i];
    if (!entry.is_object()) fail(path, cat(where, " must be an object"));
    const json& count = field(entry, "count", path, where);
    if (!count.is_number_integer() || count.get<std::int64_t>() < 1) {
      fail(path, cat(where, ".count must be a number of at least 1"));
    }
    Times times;
    times.first = time_of(field(entry, "first", path, where), path, where + ".first");
    times.sum = time_of(field(entry, "sum", path, where), path, where + ".sum");
    times.count = count.get<std::int64_t>();
    const std::string op = text_of(field(entry, "op", path, where), path, where + ".op");
    const std::string device =
        text_of(field(entry, "device", path, where), path, where + ".device");
    profile.times_[op][device] = times;
  }
  return profile;
}

}  // namespace tandem
