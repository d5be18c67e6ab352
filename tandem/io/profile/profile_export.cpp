#include "tandem/io/profile_export.h"

#include <charconv>
#include <ctime>
#include <map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/record_file.h"
#include "tandem/io/internal/event_encoding.h"
#include "tandem/io/internal/profile_steps.h"

namespace tandem::io {
namespace {

using profiler::Event;
using profiler::EventKind;

// A scope is a name alone, so the number goes into it, as TensorFlow's annotations have it:
// "train#step_num=12#".
constexpr std::string_view kStepMark = "#step_num=";

std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y_%m_%d_%H_%M_%S", &parts)};
}

std::vector<ProfileStep> marked_steps(const profiler::Profile& profile) {
  std::vector<ProfileStep> steps;
  for (const Event& event : profile.events()) {
    if (!is_step_scope(event)) continue;
    const std::size_t at = event.name.find(kStepMark);
    ProfileStep step{std::string(event.name.substr(0, at)), 0, event.track, event.begin, event.end};
    const std::string_view digits = event.name.substr(at + kStepMark.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), step.number);
    steps.push_back(std::move(step));
  }
  return steps;
}

// Functions within functions are no steps.
std::vector<ProfileStep> calls_as_steps(const profiler::Profile& profile) {
  std::map<int, double> busy_until;  // by track
  std::map<std::string_view, double> seconds;
  std::vector<const Event*> outermost;
  for (const Event& event : profile.events()) {
    if (event.kind != EventKind::kFunction || event.begin < busy_until[event.track]) continue;
    busy_until[event.track] = event.end;
    seconds[event.name] += event.end - event.begin;
    outermost.push_back(&event);
  }
  std::string_view longest;
  for (const auto& [name, time] : seconds) {
    if (longest.empty() || time > seconds[longest]) longest = name;
  }
  std::vector<ProfileStep> steps;
  for (const Event* event : outermost) {
    if (event->name != longest) continue;
    steps.push_back(
        {"step", static_cast<std::int64_t>(steps.size()), event->track, event->begin, event->end});
  }
  return steps;
}

}  // namespace

ProfiledStep::ProfiledStep(std::string_view name, std::int64_t step)
    : scope_(cat(name, kStepMark, step, "#")) {}

bool is_step_scope(const Event& event) {
  return event.kind == EventKind::kScope && event.name.ends_with('#') &&
         event.name.find(kStepMark) != std::string_view::npos;
}

std::vector<ProfileStep> steps_of(const profiler::Profile& profile) {
  std::vector<ProfileStep> steps = marked_steps(profile);
  return steps.empty() ? calls_as_steps(profile) : steps;
}

std::string write_tensorboard_profile(const std::string& logdir, const profiler::Profile& profile,
                                      const std::string& run) {
  const double now = wall_time_now();
  const std::string at = run.empty() ? time_text(static_cast<std::int64_t>(now)) : run;
  const std::string folder = cat(logdir, "/plugins/profile/", at);
  fs::file_system_of(folder).make_directories(folder);
  const std::string path = cat(folder, "/", host_name(), ".xplane.pb");
  fs::write_file(path, to_xspace(profile));
  // TensorBoard looks for profiles only beside event files.
  fs::RecordWriter events(cat(logdir, "/events.out.tfevents.", static_cast<std::int64_t>(now), ".",
                              host_name(), ".profile-empty"));
  events.write(file_version_event(now));
  events.close();
  return path;
}

}  // namespace tandem::io
