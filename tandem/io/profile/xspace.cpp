// Profiles in XProf's form. What it makes of names and stats stands in its xplane_schema: steps are
// roots ("_r") with a "step_num", and what runs elsewhere for them names them as its producer.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/io/internal/event_encoding.h"
#include "tandem/io/internal/profile_steps.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/profile_export.h"
#include "tandem/io/proto/messages.h"

namespace tandem::io {
namespace {

using profiler::Event;
using profiler::EventKind;

constexpr std::string_view kHostPlane = "/host:CPU";
// XProf's ContextType::kGeneric, by which a step and what it caused are tied.
constexpr std::int64_t kStepContext = 0;

// Events of one plane, whose names are kept once.
class PlaneWriter {
 public:
  PlaneWriter(std::int64_t id, std::string name, std::int64_t start_ns) : start_ns_(start_ns) {
    plane_.id = id;
    plane_.name = std::move(name);
  }

  // The place of the line of that name.
  std::size_t line(const std::string& name) {
    const auto [found, is_new] = lines_.try_emplace(name, plane_.lines.size());
    if (is_new) {
      proto::XLine& line = plane_.lines.emplace_back();
      line.id = line.display_id = static_cast<std::int64_t>(plane_.lines.size());
      line.name = name;
      line.timestamp_ns = start_ns_;
    }
    return found->second;
  }

  proto::XEvent& add(std::size_t line, const std::string& name, const std::string& display_name,
                     double begin, double end) {
    const auto [found, is_new] =
        events_.try_emplace(name, static_cast<std::int64_t>(events_.size()) + 1);
    if (is_new) {
      proto::XEventMetadata& metadata = plane_.event_metadata[found->second];
      metadata.id = found->second;
      metadata.name = name;
      metadata.display_name = display_name;
    }
    constexpr double kPicoseconds = 1e12;
    proto::XEvent& event = plane_.lines[line].events.emplace_back();
    event.metadata_id = found->second;
    event.which_data = proto::XEvent::Case::kOffsetPs;
    event.offset_ps = std::llround(std::max(begin, 0.0) * kPicoseconds);
    event.duration_ps = std::llround(std::max(end - begin, 0.0) * kPicoseconds);
    return event;
  }

  void stat(std::vector<proto::XStat>& stats, const String& name, std::int64_t value) {
    proto::XStat& stat = new_stat(stats, name);
    stat.which_value = proto::XStat::Case::kInt64Value;
    stat.int64_value = value;
  }
  void stat(std::vector<proto::XStat>& stats, const String& name, std::string_view value) {
    proto::XStat& stat = new_stat(stats, name);
    stat.which_value = proto::XStat::Case::kStrValue;
    stat.str_value = value;
  }

  proto::XPlane& plane() { return plane_; }

  // XProf finds out what is within what by the order.
  void sort() {
    for (proto::XLine& line : plane_.lines) {
      std::stable_sort(line.events.begin(), line.events.end(),
                       [](const proto::XEvent& a, const proto::XEvent& b) {
                         return a.offset_ps != b.offset_ps ? a.offset_ps < b.offset_ps
                                                           : a.duration_ps > b.duration_ps;
                       });
    }
  }

 private:
  proto::XStat& new_stat(std::vector<proto::XStat>& stats, const std::string& name) {
    const auto [found, is_new] =
        stats_.try_emplace(name, static_cast<std::int64_t>(stats_.size()) + 1);
    if (is_new) {
      proto::XStatMetadata& metadata = plane_.stat_metadata[found->second];
      metadata.id = found->second;
      metadata.name = name;
    }
    stats.emplace_back().metadata_id = found->second;
    return stats.back();
  }

  const std::int64_t start_ns_;
  proto::XPlane plane_;
  std::map<std::string, std::size_t> lines_;
  std::map<std::string, std::int64_t> events_;
  std::map<std::string, std::int64_t> stats_;
};

// TensorFlow's name of an op: "scope/node:Type".
std::string op_name(const Event& event) {
  std::string name;
  for (const char c : event.name) {
    const bool fine = std::isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                      (!name.empty() && (c == '_' || c == '/' || c == '-' || c == '>'));
    name += fine ? c : name.empty() ? 'n' : '_';
  }
  return cat(name, ":", event.op.empty() ? std::string_view("Unknown") : event.op);
}

bool is_cpu(std::string_view device) { return device.find("CPU:") != std::string_view::npos; }

const char* copy_name(const Event& event) {
  if (is_cpu(event.from)) return is_cpu(event.to) ? "MEMCPYHtoH" : "MEMCPYHtoD";
  return is_cpu(event.to) ? "MEMCPYDtoH" : "MEMCPYDtoD";
}

class SpaceWriter {
 public:
  explicit SpaceWriter(const profiler::Profile& profile)
      : profile_(profile), steps_(steps_of(profile)) {
    planes_.emplace_back(0, std::string(kHostPlane), profile.wall_start_ns());
    by_name_.emplace(kHostPlane, 0);
  }

  proto::XSpace operator()(const std::string& host) {
    for (const profiler::Track& track : profile_.tracks()) add_track(track);
    for (const ProfileStep& step : steps_) add_step(step);
    for (const Event& event : profile_.events()) add_event(event);
    proto::XSpace space;
    space.hostnames.push_back(host);
    for (PlaneWriter& plane : planes_) {
      plane.sort();
      space.planes.push_back(std::move(plane.plane()));
    }
    space.planes.push_back(environment());
    if (profile_.dropped() > 0) {
      space.warnings.push_back(
          cat(profile_.dropped(), " events were dropped: record fewer steps, or more events."));
    }
    return space;
  }

 private:
  struct Place {
    std::size_t plane;
    std::size_t line;
  };

  // What a thread does lies on one line, whatever it does: its kernels within its functions, and
  // its waits for input.
  void add_track(const profiler::Track& track) {
    const bool is_device = track.process.find("/device:") != std::string::npos;
    if (!is_device || is_cpu(track.process)) {
      constexpr std::string_view kInputPrefix = "for ";
      std::string line = track.name;
      if (line.starts_with(kInputPrefix)) line = line.substr(kInputPrefix.size());
      if (track.overlaps) line = cat(line, " on ", device_text(track.process));
      if (track.process == "memory") line = cat("memory of ", device_text(track.name));
      places_.push_back({0, planes_[0].line(line)});
      return;
    }
    const std::string name = cat("/device:", device_text(track.process));
    const auto [found, is_new] = by_name_.try_emplace(name, planes_.size());
    if (is_new) {
      planes_.emplace_back(static_cast<std::int64_t>(planes_.size()), name,
                           profile_.wall_start_ns());
    }
    PlaneWriter& plane = planes_[found->second];
    const std::size_t number = plane.plane().lines.size();
    places_.push_back({found->second, plane.line(cat("Stream #", number, "(", track.name, ")"))});
  }

  // "GPU:0".
  static std::string device_text(const std::string& process) {
    const std::size_t at = process.rfind("/device:");
    return at == std::string::npos ? process : process.substr(at + std::string("/device:").size());
  }

  void add_step(const ProfileStep& step) {
    const Place place = places_[static_cast<std::size_t>(step.track)];
    PlaneWriter& plane = planes_[place.plane];
    proto::XEvent& event = plane.add(place.line, step.name, step.name, step.begin, step.end);
    plane.stat(event.stats, "_r", std::int64_t{1});
    plane.stat(event.stats, "step_num", step.number);
    plane.stat(event.stats, "_pt", kStepContext);
    plane.stat(event.stats, "_p", step.number);
  }

  // The step during which it begins, unless that is on the same line and so contains it.
  const ProfileStep* step_elsewhere(const Event& event, const Place& place) const {
    const auto after =
        std::upper_bound(steps_.begin(), steps_.end(), event.begin,
                         [](double time, const ProfileStep& step) { return time < step.begin; });
    if (after == steps_.begin()) return nullptr;
    const ProfileStep& step = *(after - 1);
    const Place own = places_[static_cast<std::size_t>(step.track)];
    const bool same = own.plane == place.plane && own.line == place.line;
    return same || event.begin >= step.end ? nullptr : &step;
  }

  void add_event(const Event& event) {
    if (is_step_scope(event)) return;
    if (event.kind == EventKind::kMemory) return add_memory(event);
    const Place place = places_[static_cast<std::size_t>(event.track)];
    PlaneWriter& plane = planes_[place.plane];
    const std::string name = name_of(event);
    proto::XEvent& added =
        plane.add(place.line, name, display_name_of(event), event.begin, event.end);
    const bool on_device = place.plane != 0;
    if (event.kind == EventKind::kKernel && on_device) plane.stat(added.stats, "tf_op", name);
    // Without a number XProf leaves what a device does out of the steps.
    if (on_device) plane.stat(added.stats, "correlation_id", ++correlation_id_);
    if (!event.function.empty()) plane.stat(added.stats, "function", event.function);
    if (event.bytes > 0)
      plane.stat(added.stats, "bytes_accessed", static_cast<std::int64_t>(event.bytes));
    if (event.kind == EventKind::kCopy) {
      plane.stat(added.stats, "memcpy_details",
                 cat("size:", static_cast<std::int64_t>(event.bytes), " dest:0 async:1"));
      plane.stat(added.stats, "value", event.name);
      plane.stat(added.stats, "from", event.from);
      plane.stat(added.stats, "to", event.to);
    }
    if (event.kind == EventKind::kInput) {
      plane.stat(added.stats, "pipeline", event.name);
      plane.stat(added.stats, "stages", event.op);
    }
    if (const ProfileStep* step = step_elsewhere(event, place)) {
      plane.stat(added.stats, "_ct", kStepContext);
      plane.stat(added.stats, "_c", step->number);
    }
  }

  // What XProf's page of memory is made of.
  void add_memory(const Event& event) {
    const Place place = places_[static_cast<std::size_t>(event.track)];
    PlaneWriter& plane = planes_[place.plane];
    double& peak = peaks_[event.to];
    peak = std::max(peak, event.in_use);
    const std::string name = event.bytes < 0 ? "MemoryDeallocation" : "MemoryAllocation";
    auto& stats = plane.add(place.line, name, "", event.begin, event.end).stats;
    const auto bytes = static_cast<std::int64_t>(std::abs(event.bytes));
    plane.stat(stats, "allocator_name", device_text(std::string(event.to)));
    plane.stat(stats, "addr", static_cast<std::int64_t>(event.block));
    plane.stat(stats, "requested_bytes", bytes);
    plane.stat(stats, "allocation_bytes", bytes);
    plane.stat(stats, "bytes_allocated", static_cast<std::int64_t>(event.in_use));
    plane.stat(stats, "bytes_available", static_cast<std::int64_t>(peak - event.in_use));
    plane.stat(stats, "bytes_reserved", std::int64_t{0});
    plane.stat(stats, "peak_bytes_in_use", static_cast<std::int64_t>(peak));
    plane.stat(stats, "tf_op", event.name);
  }

  static std::string name_of(const Event& event) {
    switch (event.kind) {
      case EventKind::kKernel: return op_name(event);
      case EventKind::kCopy: return copy_name(event);
      // XProf takes the time in events of this name for waiting for input.
      case EventKind::kInput: return "IteratorGetNextOp::DoCompute";
      case EventKind::kFunction:
      case EventKind::kMemory:
      case EventKind::kHardware:
      case EventKind::kScope: break;
    }
    return std::string(event.name);
  }

  static std::string display_name_of(const Event& event) {
    // Stages of pipelines: "Iterator::Root::Prefetch::Batch".
    constexpr std::string_view kIterator = "Iterator::";
    if (event.kind == EventKind::kScope && event.name.starts_with(kIterator))
      return cat(kIterator, event.name.substr(event.name.rfind(':') + 1));
    if (event.kind == EventKind::kKernel) return std::string(event.name);
    return event.kind == EventKind::kInput ? "wait for input" : "";
  }

  proto::XPlane environment() {
    PlaneWriter environment(static_cast<std::int64_t>(planes_.size()), "Task Environment",
                            profile_.wall_start_ns());
    auto& stats = environment.plane().stats;
    environment.stat(stats, "profile_start_time", profile_.wall_start_ns());
    environment.stat(stats, "profile_stop_time",
                     profile_.wall_start_ns() + std::llround(1e9 * profile_.seconds()));
    return std::move(environment.plane());
  }

  const profiler::Profile& profile_;
  const std::vector<ProfileStep> steps_;
  std::vector<PlaneWriter> planes_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<Place> places_;  // by track
  std::map<std::string_view, double> peaks_;
  std::int64_t correlation_id_ = 0;
};

}  // namespace

std::string to_xspace(const profiler::Profile& profile) {
  return proto::WireWriter::write(SpaceWriter(profile)(host_name()));
}

}  // namespace tandem::io
