#include <cmath>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/placement/device_set.h"
#include "tandem/placement/internal/json_reason.h"
#include "tandem/placement/internal/quantity.h"

namespace tandem {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxDevices = 100'000;

[[noreturn]] void fail(const std::string& what) {
  throw InvalidArgumentError(cat("device set: ", what));
}

// The library lets the last of equal keys win.
json parse(std::string_view text) {
  std::vector<std::set<std::string>> open;  // the keys so far of each object around
  const auto look = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      fail(cat("the key '", value.get<std::string>(), "' is twice in one object"));
    return true;
  };
  try {
    return json::parse(text, look);
  } catch (const json::exception& error) {
    fail(json_reason(error));
  }
}

// Reads one entry of "devices", and rejects unknown fields.
class Entry {
 public:
  Entry(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail(cat(where_, " must be an object"));
  }

  const json* find(const char* name) {
    asked_.insert(name);
    const auto it = object_.find(name);
    return it == object_.end() ? nullptr : &*it;
  }

  std::string text(const char* name) {
    const json* value = find(name);
    if (!value) return {};
    if (!value->is_string()) fail(cat(where_, ".", name, " must be a text"));
    return value->get<std::string>();
  }

  double quantity(const char* name, std::optional<double> (*parse)(std::string_view),
                  const char* example, double otherwise) {
    const json* value = find(name);
    if (!value) return otherwise;
    std::optional<double> number;
    // A bare number never means whole seconds.
    if (value->is_number() && (parse != placement::parse_seconds || *value == 0))
      number = value->get<double>();
    if (value->is_string()) number = parse(value->get<std::string>());
    if (!number || !std::isfinite(*number) || *number < 0) {
      fail(cat(where_, ".", name, " is ", value->dump(), " but must be such as ", example));
    }
    return *number;
  }

  std::int64_t count(const char* name, std::int64_t most) {
    const json* value = find(name);
    if (!value) return 1;
    const bool good = value->is_number_integer() && *value >= 1 && *value <= most;
    if (!good) fail(cat(where_, ".", name, " must be a whole number from 1 to ", most));
    return value->get<std::int64_t>();
  }

  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> list;
    const json* value = find(name);
    if (!value) return list;
    if (!value->is_array()) fail(cat(where_, ".", name, " must be a list of texts"));
    for (const json& item : *value) {
      if (!item.is_string()) fail(cat(where_, ".", name, " must be a list of texts"));
      list.push_back(item.get<std::string>());
    }
    return list;
  }

  void no_more() const {
    for (const auto& item : object_.items()) {
      if (!asked_.contains(item.key()))
        fail(cat(where_, " has an unknown field '", item.key(), "'"));
    }
  }

 private:
  const json& object_;
  std::string where_;
  std::set<std::string> asked_;
};

DeviceSpec full_spec(const std::string& name, const std::string& where) {
  DeviceSpec spec;
  try {
    spec = DeviceSpec::parse(name);
  } catch (const Error& error) {
    fail(cat(where, ".name: ", error.what()));
  }
  if (!spec.type) fail(cat(where, ".name is '", name, "' but must be such as 'GPU:0'"));
  if (!spec.index) spec.index = 0;
  return spec.merged_into(DeviceSpec::default_task());
}

std::string full_task(const std::string& name, const std::string& where) {
  try {
    return DeviceSpec::parse(name).merged_into(DeviceSpec::default_task()).task_spec().to_string();
  } catch (const Error& error) {
    fail(cat(where, ": ", error.what()));
  }
}

std::string machine_of(const DeviceModel& device) {
  return device.machine.empty() ? device.spec.task_spec().to_string() : device.machine;
}

// Bandwidth and latency of a link between hosts.
NetworkLink read_link(Entry& entry, const std::string& where) {
  NetworkLink link;
  link.bandwidth = entry.quantity("bandwidth", placement::parse_rate, "\"1GB/s\"", 0);
  link.latency = entry.quantity("latency", placement::parse_seconds, "\"50us\"", 0);
  if (link.bandwidth <= 0) fail(cat(where, " needs 'bandwidth', more than 0"));
  return link;
}

void read_links(const json& list, DeviceSet& set) {
  if (!list.is_array()) fail("'links' must be a list");
  std::set<std::string> machines;
  for (const DeviceModel& device : set.devices) machines.insert(machine_of(device));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = cat("links[", i, "]");
    Entry entry(list[i], where);
    std::vector<std::string> ends = entry.texts("between");
    if (ends.size() != 2) fail(cat(where, ".between must name two hosts"));
    for (std::string& end : ends) {
      if (end.starts_with("/job:")) end = full_task(end, where + ".between");
      if (!machines.contains(end))
        fail(cat(where, ".between: no device is on the host '", end, "'"));
    }
    if (ends[1] < ends[0]) std::swap(ends[0], ends[1]);
    const NetworkLink link = read_link(entry, where);
    entry.no_more();
    if (!set.links.emplace(std::pair(ends[0], ends[1]), link).second)
      fail(cat(where, ": the link between '", ends[0], "' and '", ends[1], "' is there twice"));
  }
}

// Each two hosts need a way to each other.
void check_links(const DeviceSet& set, bool has_network) {
  if (has_network) return;
  std::set<std::string> machines;
  for (const DeviceModel& device : set.devices) machines.insert(machine_of(device));
  for (const std::string& one : machines) {
    for (const std::string& other : machines) {
      if (one < other && !set.links.contains({one, other})) {
        fail(cat("there is neither a 'network' nor a link between the hosts '", one, "' and '",
                 other, "'"));
      }
    }
  }
}

void read_entry(const json& object, const std::string& where, DeviceSet& set) {
  Entry entry(object, where);
  DeviceModel model;
  model.spec = full_spec(entry.text("name"), where);
  model.host_memory = model.spec.type == "CPU";
  if (entry.find("kernels")) model.kernel_class = entry.text("kernels");
  model.flops = entry.quantity("flops", placement::parse_flops, "\"10T\"", 0);
  model.memory_bandwidth = entry.quantity("bandwidth", placement::parse_rate, "\"500GB/s\"", 0);
  model.launch_overhead = entry.quantity("overhead", placement::parse_seconds, "\"5us\"", 0);
  model.link_bandwidth = entry.quantity("link", placement::parse_rate, "\"12GB/s\"", 0);
  model.link_latency = entry.quantity("latency", placement::parse_seconds, "\"10us\"", 0);
  const double memory = entry.quantity("memory", placement::parse_bytes, "\"8GiB\"", 0);
  if (memory > 9e18) fail(cat(where, ".memory is too large"));
  if (memory == 0 && entry.find("memory"))
    fail(cat(where, ".memory is 0; without it there is no limit"));
  model.memory_bytes = static_cast<std::size_t>(memory);
  model.streams = static_cast<int>(entry.count("streams", 1024));
  model.without = entry.texts("without");
  model.machine = entry.text("host");
  const std::int64_t count = entry.count("count", kMaxDevices);
  const std::int64_t tasks = entry.count("tasks", kMaxDevices);
  entry.no_more();
  if (model.flops <= 0) fail(cat(where, " needs 'flops', more than 0"));
  if (model.memory_bandwidth <= 0) fail(cat(where, " needs 'bandwidth', more than 0"));
  if (!model.host_memory && model.link_bandwidth <= 0)
    fail(cat(where, " needs 'link', more than 0"));
  const int first = *model.spec.index;
  const int first_task = *model.spec.task;
  if (first > kMaxDevices || first_task > kMaxDevices || set.size() + count * tasks > kMaxDevices) {
    fail(cat("more than ", kMaxDevices, " devices"));
  }
  if (tasks > 1 && !model.machine.empty())
    fail(cat(where, " has both 'host' and 'tasks': write an entry for each task of one host"));
  for (std::int64_t t = 0; t < tasks; ++t) {
    model.spec.task = first_task + static_cast<int>(t);
    for (std::int64_t i = 0; i < count; ++i) {
      model.spec.index = first + static_cast<int>(i);
      set.devices.push_back(model);
    }
  }
}

}  // namespace

DeviceSet DeviceSet::parse_json(std::string_view text) {
  const json file = parse(text);
  if (!file.is_object()) fail("not an object");
  const auto list = file.find("devices");
  if (list == file.end() || !list->is_array()) fail("needs a list 'devices'");
  for (const auto& item : file.items()) {
    if (item.key() != "devices" && item.key() != "about" && item.key() != "network" &&
        item.key() != "links") {
      fail(cat("unknown field '", item.key(), "'"));
    }
  }
  DeviceSet set;
  for (std::size_t i = 0; i < list->size(); ++i)
    read_entry((*list)[i], cat("devices[", i, "]"), set);
  if (set.devices.empty() || !set.devices.front().host_memory) {
    fail("the first of 'devices' must be a CPU: the host");
  }
  std::set<std::string> names;
  for (const DeviceModel& device : set.devices) {
    if (!names.insert(device.name()).second) fail(cat(device.name(), " is there twice"));
  }
  // The tasks of one entry are asked for in turn, the host's devices must come first.
  set.find_hosts();
  const auto network = file.find("network");
  if (network != file.end()) {
    Entry entry(*network, "network");
    set.network = read_link(entry, "network");
    entry.no_more();
  }
  if (const auto links = file.find("links"); links != file.end()) read_links(*links, set);
  check_links(set, network != file.end());
  return set;
}

}  // namespace tandem
