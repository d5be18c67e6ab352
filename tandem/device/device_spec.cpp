#include "tandem/device/device_spec.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/device/device_types.h"

namespace tandem {
namespace {

int parse_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw InvalidArgumentError(
        cat("'", text,
            "' is not the number of a job's task, a replica or a device. A device name looks like "
            "\"GPU:0\", or in full \"/job:worker/task:0/device:GPU:0\"."));
  }
  return value;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

// "GPU", "XLA_CPU": what may stand for a type.
bool is_type_name(std::string_view text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::vector<std::string_view> fields_of(std::string_view part) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t colon = part.find(':');
    fields.push_back(part.substr(0, colon));
    if (colon == std::string_view::npos) return fields;
    part.remove_prefix(colon + 1);
  }
}

void set_device(DeviceSpec& spec, std::string_view whole, std::string_view type,
                std::string_view index) {
  if (spec.type) {
    throw InvalidArgumentError(
        cat("Multiple device types are not allowed while parsing the device spec: ", whole, "."));
  }
  spec.type = known_device_type(type).value_or(upper(type));
  if (index != "*") spec.index = parse_number(index);
}

// One part between slashes; false if it is none that we know.
bool parse_part(DeviceSpec& spec, std::string_view whole, std::string_view part) {
  const auto fields = fields_of(part);
  const std::string_view key = fields[0];
  if (fields.size() == 2 && key == "job") {
    spec.job = std::string(fields[1]);
  } else if (fields.size() == 2 && key == "replica") {
    spec.replica = parse_number(fields[1]);
  } else if (fields.size() == 2 && key == "task") {
    spec.task = parse_number(fields[1]);
  } else if (fields.size() == 2 && key == "device" && fields[1] == "*") {
    return true;
  } else if ((fields.size() == 2 || fields.size() == 3) && key == "device" &&
             is_type_name(fields[1])) {
    set_device(spec, whole, fields[1], fields.size() == 3 ? fields[2] : "*");
  } else if (fields.size() <= 2 && is_type_name(key) &&
             (known_device_type(key) || (!whole.starts_with('/') && upper(key) == key))) {
    set_device(spec, whole, key, fields.size() == 2 ? fields[1] : "*");
  } else {
    return false;
  }
  return true;
}

}  // namespace

DeviceSpec DeviceSpec::parse(std::string_view name) {
  DeviceSpec spec;
  std::string_view rest = name;
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
    if (!part.empty() && !parse_part(spec, name, part)) {
      throw InvalidArgumentError(cat("Unknown attribute '", part.substr(0, part.find(':')),
                                     "' is encountered while parsing the device spec: '", name,
                                     "'. A device name looks like \"GPU:0\", or in full "
                                     "\"/job:worker/task:0/device:GPU:0\"."));
    }
  }
  return spec;
}

DeviceSpec DeviceSpec::default_task() {
  DeviceSpec spec;
  spec.job = kDefaultJob;
  spec.replica = 0;
  spec.task = 0;
  return spec;
}

DeviceSpec DeviceSpec::task_spec() const {
  DeviceSpec spec;
  spec.job = job;
  spec.replica = replica;
  spec.task = task;
  return spec;
}

DeviceSpec DeviceSpec::merged_into(const DeviceSpec& outer) const {
  DeviceSpec merged = *this;
  if (!merged.job) merged.job = outer.job;
  if (!merged.replica) merged.replica = outer.replica;
  if (!merged.task) merged.task = outer.task;
  if (!merged.type) merged.type = outer.type;
  if (!merged.index) merged.index = outer.index;
  return merged;
}

bool DeviceSpec::matches(const DeviceSpec& full) const {
  return (!job || job == full.job) && (!replica || replica == full.replica) &&
         (!task || task == full.task) && (!type || type == full.type) &&
         (!index || index == full.index);
}

std::string DeviceSpec::to_string() const {
  std::string text;
  if (job) text += "/job:" + *job;
  if (replica) text += "/replica:" + std::to_string(*replica);
  if (task) text += "/task:" + std::to_string(*task);
  if (type) text += "/device:" + *type + ":" + (index ? std::to_string(*index) : "*");
  return text;
}

}  // namespace tandem
