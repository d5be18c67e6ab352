#include "tandem/device/emulated/emulated_spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr int kMaxDevices = 4096;
constexpr int kMaxStreams = 64;
constexpr double kMaxMemory = 0x1p44;  // what two views of it leave of an address space
constexpr double kMaxSeconds = 3600;

struct Unit {
  std::string_view name;
  double factor;
};
constexpr std::array<Unit, 4> kSizes{{{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}}};
constexpr std::array<Unit, 4> kRates{{{"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}}};
constexpr std::array<Unit, 3> kTimes{{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
constexpr std::array<Unit, 5> kFlops{{{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}};

// Where the text being parsed stands, for errors.
struct Place {
  std::string_view variable;
  std::string_view spec;

  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidArgumentError(
        cat(variable, ": ", what, " in \"", spec,
            "\". The form is TYPE:COUNT[,key=value]...[;SPEC], such as "
            "\"GPU:2,memory=1GiB,link=12GB/s,latency=10us\"; the keys are memory, link, latency, "
            "streams, compute, flops, bandwidth, class, without and fault."));
  }
  [[noreturn]] void expected(std::string_view key, std::string_view what,
                             std::string_view got) const {
    fail(cat("key \"", key, "\" takes ", what, ", not \"", got, '"'));
  }
};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> found;
  for (;;) {
    const std::size_t end = text.find(separator);
    found.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return found;
    text.remove_prefix(end + 1);
  }
}

// A decimal number at the front, which is taken off; no sign, no "inf".
std::optional<double> take_number(std::string_view& text) {
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text.front()))) return {};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<double> with_unit(std::string_view text, std::span<const Unit> units) {
  const std::optional<double> number = take_number(text);
  if (!number) return {};
  for (const Unit& unit : units) {
    if (text == unit.name) return *number * unit.factor;
  }
  return {};
}

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// Ops of our own begin with an underscore.
bool is_op_name(std::string_view text) {
  return is_name(text.starts_with('_') ? text.substr(1) : text);
}

constexpr std::string_view kFaultForm =
    "lost@N, oom@N, slow@F or stall@N joined by \"|\", where N is a count from 1 and F at least 1";

EmulatedFaults parse_faults(std::string_view text, const Place& place) {
  EmulatedFaults faults;
  std::set<std::string_view> seen;
  for (const std::string_view part : parts(text, '|')) {
    const std::size_t at = part.find('@');
    const std::string_view kind = part.substr(0, at);
    std::string_view rest = at == std::string_view::npos ? "" : part.substr(at + 1);
    if (!seen.insert(kind).second) place.expected("fault", "each kind once", text);
    if (kind == "slow") {
      const std::optional<double> factor = take_number(rest);
      if (!factor || !rest.empty() || *factor < 1 || *factor > 1e9) {
        place.expected("fault", kFaultForm, text);
      }
      faults.slow = *factor;
      continue;
    }
    const std::optional<std::uint64_t> count = whole(rest);
    std::uint64_t* field = kind == "lost"    ? &faults.lost_at
                           : kind == "oom"   ? &faults.oom_at
                           : kind == "stall" ? &faults.stall_at
                                             : nullptr;
    if (!field || !count || *count == 0) place.expected("fault", kFaultForm, text);
    *field = *count;
  }
  return faults;
}

std::vector<std::string> parse_without(std::string_view text, const Place& place) {
  std::vector<std::string> ops;
  for (const std::string_view op : parts(text, '|')) {
    if (!is_op_name(op)) place.expected("without", "op names joined by \"|\"", text);
    ops.emplace_back(op);
  }
  return ops;
}

double positive_rate(std::string_view key, std::string_view value, const Place& place) {
  const std::optional<double> rate = with_unit(value, kRates);
  if (!rate || !(*rate > 0) || std::isinf(*rate)) {
    place.expected(key, "a rate above 0 such as 12GB/s (B/s, KB/s, MB/s, GB/s)", value);
  }
  return *rate;
}

void set_key(EmulatedSpec& spec, std::string_view key, std::string_view value, const Place& place) {
  if (key == "memory") {
    const std::optional<double> bytes = with_unit(value, kSizes);
    if (!bytes || *bytes < 1 || *bytes > kMaxMemory) {
      place.expected(key, "a size from 1B to 16384GiB such as 512MiB (B, KiB, MiB, GiB)", value);
    }
    spec.memory = static_cast<std::size_t>(*bytes);
  } else if (key == "link") {
    spec.link = positive_rate(key, value, place);
  } else if (key == "bandwidth") {
    spec.bandwidth = positive_rate(key, value, place);
  } else if (key == "latency") {
    const std::optional<double> seconds = with_unit(value, kTimes);
    if (!seconds || *seconds > kMaxSeconds) {
      place.expected(key, "a time of at most an hour such as 10us (us, ms, s)", value);
    }
    spec.latency = *seconds;
  } else if (key == "flops") {
    const std::optional<double> flops = with_unit(value, kFlops);
    if (!flops || !(*flops > 0) || std::isinf(*flops)) {
      place.expected(key, "a number above 0 such as 1.5T (K, M, G, T)", value);
    }
    spec.flops = *flops;
  } else if (key == "streams") {
    const std::optional<std::uint64_t> streams = whole(value);
    if (!streams || *streams < 1 || *streams > kMaxStreams) {
      place.expected(key, cat("a count from 1 to ", kMaxStreams), value);
    }
    spec.streams = static_cast<int>(*streams);
  } else if (key == "compute") {
    if (value != "real" && value != "timed") place.expected(key, "real or timed", value);
    spec.timed = value == "timed";
  } else if (key == "class") {
    if (!is_name(value)) place.expected(key, "a name of letters, digits and _", value);
    spec.kernel_class = value;
  } else if (key == "without") {
    spec.without = parse_without(value, place);
  } else if (key == "fault") {
    spec.fault = parse_faults(value, place);
  } else {
    place.fail(cat("unknown key \"", key, '"'));
  }
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

EmulatedSpec parse_one(std::string_view text, const Place& place) {
  EmulatedSpec spec;
  const std::vector<std::string_view> fields = parts(text, ',');
  const std::size_t colon = fields.front().find(':');
  const std::string_view type = trimmed(fields.front().substr(0, colon));
  if (!is_name(type)) place.fail(cat("expected a device type, not \"", type, '"'));
  spec.type = upper(type);
  constexpr std::array<std::string_view, 5> kParts{"JOB", "REPLICA", "TASK", "DEVICE",
                                                   "PHYSICAL_DEVICE"};
  if (std::find(kParts.begin(), kParts.end(), spec.type) != kParts.end()) {
    place.fail(cat("\"", type,
                   "\" is a part of each device's name, so no device type can have it "
                   "for its own"));
  }
  if (spec.type == "CPU") place.fail("CPU is the host itself and cannot be emulated");
  if (colon == std::string_view::npos) place.fail("expected TYPE:COUNT, and there is no count");
  const std::string_view number = trimmed(fields.front().substr(colon + 1));
  const std::optional<std::uint64_t> count = whole(number);
  if (!count || *count < 1 || *count > kMaxDevices) {
    place.fail(cat("expected a count of devices from 1 to ", kMaxDevices, ", not \"", number, '"'));
  }
  spec.count = static_cast<int>(*count);

  std::set<std::string_view> seen;
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const std::size_t equals = fields[i].find('=');
    if (equals == std::string_view::npos) {
      place.fail(cat("expected key=value, not \"", fields[i], '"'));
    }
    const std::string_view key = trimmed(fields[i].substr(0, equals));
    if (!seen.insert(key).second) place.fail(cat("key \"", key, "\" stands twice"));
    set_key(spec, key, trimmed(fields[i].substr(equals + 1)), place);
  }
  return spec;
}

// The shortest text that parses to the same number.
std::string number_text(double value) {
  std::array<char, 32> text;
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general);
  return std::string(text.data(), end);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "|") + name;
  return text;
}

}  // namespace

std::string EmulatedFaults::to_string() const {
  std::vector<std::string> parts;
  if (lost_at != 0) parts.push_back(cat("lost@", lost_at));
  if (oom_at != 0) parts.push_back(cat("oom@", oom_at));
  if (stall_at != 0) parts.push_back(cat("stall@", stall_at));
  if (slow != 1) parts.push_back("slow@" + number_text(slow));
  return joined(parts);
}

std::string EmulatedSpec::to_string() const {
  std::string text = cat(type, ':', count, ",memory=", memory, "B,link=", number_text(link),
                         "B/s,latency=", number_text(latency), "s,streams=", streams,
                         ",compute=", timed ? "timed" : "real", ",flops=", number_text(flops),
                         ",bandwidth=", number_text(bandwidth), "B/s");
  if (!kernel_class.empty()) text += ",class=" + kernel_class;
  if (!without.empty()) text += ",without=" + joined(without);
  if (const std::string faults = fault.to_string(); !faults.empty()) text += ",fault=" + faults;
  return text;
}

std::vector<EmulatedSpec> EmulatedSpec::parse(std::string_view text, std::string_view variable) {
  std::vector<EmulatedSpec> specs;
  if (trimmed(text).empty()) return specs;
  for (const std::string_view part : parts(text, ';')) {
    specs.push_back(parse_one(part, Place{variable, text}));
  }
  return specs;
}

void EmulatedSpec::validate(std::string_view variable) const {
  const std::vector<EmulatedSpec> read = parse(to_string(), variable);
  if (read.size() != 1 || read[0].type != type || read[0].count != count)
    Place{variable, type}.fail(cat("'", type, "' is no device type, which is in upper case,"));
}

}  // namespace tandem
