// The trace format of Chrome and Perfetto: an array of events, times in microseconds.

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/core/internal/float_text.h"
#include "tandem/runtime/profile/profile_data.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/profiler.h"

namespace tandem::profiler {
namespace {

std::string in_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string microseconds(double seconds) { return fixed_text(1e6 * seconds, 3); }

std::string whole(double number) {
  char buffer[400];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::fixed, 0);
  return {buffer, end.ptr};
}

const char* category(EventKind kind) {
  switch (kind) {
    case EventKind::kCopy: return "copy";
    case EventKind::kFunction: return "function";
    case EventKind::kScope: return "scope";
    case EventKind::kInput: return "input";
    case EventKind::kMemory: return "memory";
    case EventKind::kHardware: return "hardware";
    case EventKind::kKernel: break;
  }
  return "kernel";
}

class TraceWriter {
 public:
  explicit TraceWriter(const Profile::Data& data) : data_(data) {
    for (std::size_t t = 0; t < data.tracks.size(); ++t) {
      const int process =
          processes_.try_emplace(data.tracks[t].process, static_cast<int>(processes_.size()) + 1)
              .first->second;
      process_.push_back(process);
    }
  }

  std::string operator()() {
    out_ = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped_events\":" +
           std::to_string(data_.dropped) + "},\"traceEvents\":[";
    names();
    for (std::size_t i = 0; i < data_.events.size(); ++i) event(i);
    arrows();
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  void begin_entry() {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  std::string place(int track) const {
    return "\"pid\":" + std::to_string(process_[static_cast<std::size_t>(track)]) +
           ",\"tid\":" + std::to_string(track + 1);
  }

  void names() {
    for (const auto& [name, number] : processes_) {
      begin_entry();
      out_ += "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + std::to_string(number) +
              ",\"args\":{\"name\":" + in_json(name) + "}}";
    }
    for (std::size_t t = 0; t < data_.tracks.size(); ++t) {
      begin_entry();
      out_ += "{\"ph\":\"M\",\"name\":\"thread_name\"," + place(static_cast<int>(t)) +
              ",\"args\":{\"name\":" + in_json(data_.tracks[t].name) + "}}";
    }
  }

  void event(std::size_t i) {
    const Event& e = data_.events[i];
    if (e.kind == EventKind::kMemory) {
      begin_entry();
      out_ += "{\"ph\":\"C\",\"ts\":" + microseconds(e.begin) +
              ",\"name\":" + in_json("memory of " + std::string(e.to)) + "," + place(e.track) +
              ",\"args\":{\"bytes\":" + whole(e.in_use) + "}}";
      return;
    }
    const std::string head = std::string(",\"cat\":\"") + category(e.kind) +
                             "\",\"name\":" + in_json(e.name) + "," + place(e.track);
    std::string args;
    const auto add = [&](const char* name, const std::string& value) {
      args += (args.empty() ? "\"" : ",\"") + std::string(name) + "\":" + value;
    };
    if (!e.op.empty()) add(e.kind == EventKind::kInput ? "stages" : "op", in_json(e.op));
    if (!e.function.empty()) add("function", in_json(e.function));
    if (e.bytes > 0) add("bytes", whole(e.bytes));
    if (!e.from.empty()) add("from", in_json(e.from));
    if (!e.to.empty()) add("to", in_json(e.to));
    begin_entry();
    if (data_.tracks[static_cast<std::size_t>(e.track)].overlaps) {
      const std::string id = ",\"id\":" + std::to_string(i);
      out_ += "{\"ph\":\"b\",\"ts\":" + microseconds(e.begin) + id + head + ",\"args\":{" + args +
              "}},\n{\"ph\":\"e\",\"ts\":" + microseconds(e.end) + id + head + "}";
      return;
    }
    out_ += "{\"ph\":\"X\",\"ts\":" + microseconds(e.begin) +
            ",\"dur\":" + microseconds(e.end - e.begin) + head + ",\"args\":{" + args + "}}";
  }

  // From what made a value to its copy, and on to the first kernel that uses it there.
  void arrows() {
    std::map<const RecordedNode*, std::vector<std::size_t>> runs;
    for (std::size_t i = 0; i < data_.events.size(); ++i) {
      if (data_.events[i].kind == EventKind::kKernel && data_.nodes[i])
        runs[data_.nodes[i]].push_back(i);
    }
    for (std::size_t i = 0; i < data_.events.size(); ++i) {
      const Event& copy = data_.events[i];
      const RecordedNode* maker = data_.nodes[i];
      if (copy.kind != EventKind::kCopy || !maker) continue;
      const std::vector<std::size_t>& made = runs[maker];
      for (auto run = begun(made, copy.begin); run != made.begin();) {
        if (data_.events[*--run].end > copy.begin) continue;
        arrow(*run, i);
        break;
      }
      if (const auto user = first_user(copy, *maker, runs)) arrow(i, *user);
    }
  }

  // The first of a node's runs that begins at `time` or later.
  std::vector<std::size_t>::const_iterator begun(const std::vector<std::size_t>& runs,
                                                 double time) const {
    return std::partition_point(runs.begin(), runs.end(),
                                [&](std::size_t run) { return data_.events[run].begin < time; });
  }

  std::optional<std::size_t> first_user(
      const Event& copy, const RecordedNode& maker,
      const std::map<const RecordedNode*, std::vector<std::size_t>>& runs) const {
    const auto& nodes = maker.plan->nodes;
    const int id = static_cast<int>(&maker - nodes.data());
    std::optional<std::size_t> first;
    for (const int user : users_of(*maker.plan)[static_cast<std::size_t>(id)]) {
      const auto found = runs.find(&nodes[static_cast<std::size_t>(user)]);
      if (found == runs.end()) continue;
      const auto run = begun(found->second, copy.end);
      if (run == found->second.end()) continue;
      const Event& e = data_.events[*run];
      if (data_.tracks[static_cast<std::size_t>(e.track)].process == copy.to &&
          (!first || e.begin < data_.events[*first].begin))
        first = *run;
    }
    return first;
  }

  const std::vector<std::vector<int>>& users_of(const RecordedPlan& plan) const {
    auto& users = users_[&plan];
    if (users.empty()) {
      users.resize(plan.nodes.size());
      for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
        for (const int in : plan.nodes[n].inputs) {
          if (static_cast<std::size_t>(in) < users.size())
            users[static_cast<std::size_t>(in)].push_back(static_cast<int>(n));
        }
      }
    }
    return users;
  }

  void arrow(std::size_t from, std::size_t to) {
    const Event& a = data_.events[from];
    const Event& b = data_.events[to];
    const std::string id =
        ",\"cat\":\"copy\",\"name\":\"copy\",\"id\":" + std::to_string(++arrows_);
    begin_entry();
    // The arrow has to start inside of the event.
    out_ += "{\"ph\":\"s\",\"ts\":" + microseconds(std::max(a.begin, a.end - 1e-9)) + id + "," +
            place(a.track) + "},\n{\"ph\":\"f\",\"bp\":\"e\",\"ts\":" + microseconds(b.begin) + id +
            "," + place(b.track) + "}";
  }

  const Profile::Data& data_;
  std::map<std::string, int> processes_;
  std::vector<int> process_;  // by track
  mutable std::map<const RecordedPlan*, std::vector<std::vector<int>>> users_;
  std::string out_;
  bool first_ = true;
  int arrows_ = 0;
};

}  // namespace

std::string Profile::to_json() const { return TraceWriter(*data_)(); }

}  // namespace tandem::profiler
