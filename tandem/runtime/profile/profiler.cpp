#include "tandem/runtime/profiler.h"

#include <algorithm>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/runtime/profile/hardware_traces.h"
#include "tandem/runtime/profile/profile_data.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::profiler {

Profile::Profile() : Profile(std::make_shared<const Data>()) {}

Profile::Profile(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

const std::vector<Track>& Profile::tracks() const { return data_->tracks; }

const std::vector<Event>& Profile::events() const { return data_->events; }

std::uint64_t Profile::dropped() const { return data_->dropped; }

double Profile::seconds() const { return data_->seconds; }

std::int64_t Profile::wall_start_ns() const { return data_->wall_start_ns; }

std::vector<FunctionGraph> Profile::function_graphs() const {
  std::vector<FunctionGraph> graphs;
  if (!data_->names) return graphs;
  for (const RecordedPlan* plan : data_->names->plans()) {
    FunctionGraph& graph = graphs.emplace_back();
    graph.function = plan->function;
    std::vector<int> index(plan->nodes.size(), -1);
    for (std::size_t i = 0; i < plan->nodes.size(); ++i) {
      if (plan->nodes[i].name.empty()) continue;
      index[i] = static_cast<int>(graph.nodes.size());
      graph.nodes.push_back({plan->nodes[i].name, plan->nodes[i].op, {}});
    }
    for (std::size_t i = 0; i < plan->nodes.size(); ++i) {
      if (index[i] < 0) continue;
      for (const int in : plan->nodes[i].inputs) {
        const auto maker = static_cast<std::size_t>(in);
        if (maker < index.size() && index[maker] >= 0)
          graph.nodes[static_cast<std::size_t>(index[i])].inputs.push_back(index[maker]);
      }
    }
  }
  return graphs;
}

std::map<std::string, NodeTime, std::less<>> Profile::node_times(std::string_view function) const {
  struct Times {
    double first = 0;
    double sum = 0;
    std::int64_t runs = 0;
  };
  std::map<std::string, Times, std::less<>> times;
  for (std::size_t i = 0; i < data_->events.size(); ++i) {
    const Event& event = data_->events[i];
    if (event.kind != EventKind::kKernel || !data_->nodes[i]) continue;
    if (!function.empty() && event.function != function) continue;
    Times& t = times[std::string(event.name)];
    const double seconds = event.end - event.begin;
    if (t.runs++ == 0) {
      t.first = seconds;
    } else {
      t.sum += seconds;
    }
  }
  std::map<std::string, NodeTime, std::less<>> result;
  for (const auto& [name, t] : times) {
    result[name] = {t.runs, t.runs > 1 ? t.sum / static_cast<double>(t.runs - 1) : t.first};
  }
  return result;
}

CostProfile Profile::costs() const {
  CostProfile costs;
  for (std::size_t i = 0; i < data_->events.size(); ++i) {
    const Event& event = data_->events[i];
    const RecordedNode* node = data_->nodes[i];
    const std::string& kind = data_->kinds[static_cast<std::size_t>(event.track)];
    // What waits for others says nothing of the device.
    if (event.kind != EventKind::kKernel || !node || kind.empty()) continue;
    costs.add(node->key, kind, event.end - event.begin);
  }
  return costs;
}

void Profile::save(const String& path) const { fs::write_file(path, to_json()); }

namespace {

std::shared_ptr<StepRecorder> recorder_with(const Options& options) {
  if (options.max_events < 1 || options.max_events > Options::kMaxEvents) {
    throw InvalidArgumentError(cat("td::profiler: max_events must be from 1 to ",
                                   Options::kMaxEvents, ", not ", options.max_events, "."));
  }
  return std::make_shared<StepRecorder>(options.max_events);
}

}  // namespace

void start(const Options& options) {
  const auto recorder = recorder_with(options);
  if (options.memory) recorder->record_memory();
  StepRecorder::start(recorder);
  HardwareTraces::of_profiler().begin();
}

bool running() { return StepRecorder::active() != nullptr; }

namespace {

Profile profile_of(const std::shared_ptr<StepRecorder>& recorder) {
  auto data = std::make_shared<Profile::Data>();
  const StepRecorder::Time length = StepRecorder::now() - recorder->started();
  data->seconds = 1e-9 * static_cast<double>(length);
  data->wall_start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count() -
                        length;
  const std::vector<StepRecorder::Record> records = recorder->close();
  data->names = recorder;
  data->tracks = recorder->tracks();
  data->kinds = recorder->kinds();
  data->dropped = recorder->dropped();
  data->events.reserve(records.size());
  data->nodes.reserve(records.size());
  const auto seconds = [&](StepRecorder::Time t) {
    return 1e-9 * static_cast<double>(t - recorder->started());
  };
  for (const StepRecorder::Record& record : records) {
    Event event;
    event.kind = record.kind;
    event.track = record.track;
    event.begin = seconds(record.begin);
    event.end = seconds(record.end);
    event.bytes = record.bytes;
    event.block = record.block;
    event.in_use = record.in_use;
    if (record.node) {
      event.name = record.node->name;
      event.function = record.node->plan->function;
      event.op = record.node->op;
    }
    if (record.plan) event.function = record.plan->function;
    if (record.name) event.name = *record.name;
    if (!record.node && record.kind == EventKind::kKernel) event.op = event.name;
    if (record.detail) event.op = *record.detail;
    if (record.from) event.from = *record.from;
    if (record.to) event.to = *record.to;
    data->events.push_back(event);
    data->nodes.push_back(record.node);
  }
  return Profile(std::move(data));
}

}  // namespace

Profile stop() {
  const std::shared_ptr<StepRecorder> recorder = StepRecorder::stop();
  HardwareTraces::of_profiler().end(*recorder);
  return profile_of(recorder);
}

Recording::Recording(const Options& options)
    : recorder_(recorder_with(options)), saved_(thread_context().recorder) {
  thread_context().recorder = recorder_;
  StepRecorder::count_recording(1);
}

Recording::~Recording() {
  if (recorder_) end();
}

Profile Recording::stop() {
  if (!recorder_) throw FailedPreconditionError("This recording has been stopped already.");
  const std::shared_ptr<StepRecorder> recorder = recorder_;
  end();
  return profile_of(recorder);
}

void Recording::end() {
  StepRecorder::count_recording(-1);
  thread_context().recorder = std::move(saved_);
  recorder_ = nullptr;
}

void record_input(std::string_view pipeline, std::string_view stages,
                  std::chrono::steady_clock::time_point begin,
                  std::chrono::steady_clock::time_point end) {
  const auto recorder = StepRecorder::active();
  if (!recorder) return;
  const auto time = [](std::chrono::steady_clock::time_point at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  };
  recorder->input(pipeline, stages, std::max<std::int64_t>(time(begin), recorder->started()),
                  time(end));
}

Scope::Scope(StringView name) {
  if (!StepRecorder::on()) return;
  name_ = name;
  begin_ = StepRecorder::now();
}

Scope::~Scope() {
  if (begin_ < 0) return;
  const auto recorder = StepRecorder::active();
  if (!recorder) return;
  // Begun in an earlier recording, it is seen from this one's start on.
  recorder->thread_event(EventKind::kScope, name_, std::max(begin_, recorder->started()),
                         StepRecorder::now());
}

}  // namespace tandem::profiler
