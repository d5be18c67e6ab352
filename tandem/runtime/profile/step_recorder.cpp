#include "tandem/runtime/profile/step_recorder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/placement/device_set.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

constexpr std::size_t kChunk = 1024;

// What `profiler::start` has begun: of steps that have no recording of their own.
struct Started {
  std::mutex mutex;
  std::shared_ptr<StepRecorder> recorder;
};

// Never destroyed: threads may look at it while the process ends.
Started& started_by_profiler() {
  static auto* started = new Started;
  return *started;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

int thread_number() {
  static std::atomic<int> next{1};
  thread_local const int number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

thread_local const std::string* current_function = nullptr;

double known_bytes(DType dtype, const PartialShape& shape) {
  if (!shape.is_fully_known() || is_object(dtype) || is_ref(dtype)) return 0;
  return static_cast<double>(shape.to_shape().num_elements()) *
         static_cast<double>(dtype_size(dtype));
}

double array_bytes(const Array& array) {
  if (!array.valid() || is_object(array.dtype()) || is_ref(array.dtype())) return 0;
  return static_cast<double>(array.num_bytes());
}

// What hands its first input on; of a Merge any of them.
bool forwards(NodeKind kind) {
  switch (kind) {
    case NodeKind::kCopyToHost:
    case NodeKind::kCopyToDevice:
    case NodeKind::kSwitch:
    case NodeKind::kMerge:
    case NodeKind::kEnter:
    case NodeKind::kExit:
    case NodeKind::kNextIteration:
    case NodeKind::kLoopCond: return true;
    default: return false;
  }
}

void add_makers(const Node& node, std::vector<int>& makers) {
  std::vector<const Node*> seen{&node};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const Node& at = *seen[i];
    if (!forwards(at.kind())) {
      makers.push_back(at.id());
      continue;
    }
    const std::size_t inputs = at.kind() == NodeKind::kMerge ? at.inputs().size() : 1;
    for (std::size_t in = 0; in < std::min(inputs, at.inputs().size()); ++in) {
      const Node* from = at.inputs()[in].node;
      if (std::find(seen.begin(), seen.end(), from) == seen.end()) seen.push_back(from);
    }
  }
}

RecordedNode recorded(const Node& node) {
  RecordedNode entry;
  entry.name = node.name();
  entry.op = node.op().name;
  entry.key = CostProfile::key(node);
  for (const Output& in : node.inputs()) {
    add_makers(*in.node, entry.inputs);
    entry.bytes += known_bytes(in.node->output_dtype(in.index), in.node->output_shape(in.index));
  }
  for (int i = 0; i < node.num_outputs(); ++i)
    entry.bytes += known_bytes(node.output_dtype(i), node.output_shape(i));
  return entry;
}

// The name that a CostModel uses.
std::string device_kind(const Device& device) {
  DeviceModel model;
  model.spec = device.spec();
  return CostProfile::kind(model);
}

const char* stream_name(StreamKind kind) {
  switch (kind) {
    case StreamKind::kCopyIn: return "copy in ";
    case StreamKind::kCopyOut: return "copy out ";
    case StreamKind::kCompute: break;
  }
  return "compute ";
}

}  // namespace

struct StepRecorder::Chunk {
  std::array<Slot, kChunk> slots;
};

std::atomic<int> StepRecorder::recording_{0};

StepRecorder::StepRecorder(std::size_t max_events)
    : id_(next_id()),
      capacity_(std::max<std::size_t>(max_events, 1)),
      started_(now()),
      chunks_(std::make_unique<std::atomic<Chunk*>[]>((capacity_ + kChunk - 1) / kChunk)) {}

StepRecorder::~StepRecorder() {
  for (std::size_t i = 0; i < (capacity_ + kChunk - 1) / kChunk; ++i) delete chunks_[i].load();
}

std::shared_ptr<StepRecorder> StepRecorder::of_this_thread() {
  if (const auto& own = thread_context().recorder) return own;
  std::lock_guard lock(started_by_profiler().mutex);
  return started_by_profiler().recorder;
}

void StepRecorder::start(std::shared_ptr<StepRecorder> recorder) {
  std::lock_guard lock(started_by_profiler().mutex);
  if (started_by_profiler().recorder) {
    throw FailedPreconditionError(
        "The profiler is already recording. Call td::profiler::stop() before it is started again, "
        "or record one thread's steps with a td::profiler::Recording.");
  }
  if (recorder->memory_) set_memory_listener(&StepRecorder::hear_of_memory);
  started_by_profiler().recorder = std::move(recorder);
  count_recording(1);
}

std::shared_ptr<StepRecorder> StepRecorder::stop() {
  std::lock_guard lock(started_by_profiler().mutex);
  if (!started_by_profiler().recorder) {
    throw FailedPreconditionError(
        "The profiler is not recording. Call td::profiler::start() first.");
  }
  count_recording(-1);
  set_memory_listener(nullptr);
  return std::move(started_by_profiler().recorder);
}

std::uint64_t StepRecorder::new_plan_id() { return next_id(); }

// ---- Names ----

const RecordedPlan& StepRecorder::plan(std::uint64_t plan_id, const EachNode& each) {
  {
    std::lock_guard lock(mutex_);
    const auto found = plans_.find(plan_id);
    if (found != plans_.end()) return *found->second;
  }
  auto plan = std::make_unique<RecordedPlan>();
  plan->function = FunctionSpan::current();
  each([&](const Node& node) {
    const auto id = static_cast<std::size_t>(node.id());
    if (id >= plan->nodes.size()) plan->nodes.resize(id + 1);
    plan->nodes[id] = recorded(node);
  });
  for (RecordedNode& node : plan->nodes) node.plan = plan.get();
  std::lock_guard lock(mutex_);
  return *plans_.try_emplace(plan_id, std::move(plan)).first->second;
}

const std::string* StepRecorder::text(std::string_view text) {
  std::lock_guard lock(mutex_);
  auto found = texts_.find(text);
  if (found == texts_.end()) {
    found = texts_.emplace(std::string(text), std::make_unique<std::string>(text)).first;
  }
  return found->second.get();
}

int StepRecorder::track(const std::string& process, const std::string& name,
                        const std::string& kind, bool overlaps) {
  std::lock_guard lock(mutex_);
  const auto [entry, is_new] =
      track_numbers_.try_emplace({process, name}, static_cast<int>(tracks_.size()));
  if (is_new) {
    tracks_.push_back({process, name, overlaps});
    kinds_.push_back(kind);
  }
  return entry->second;
}

int StepRecorder::thread_track() {
  struct Cached {
    std::uint64_t recorder = 0;
    int track = 0;
  };
  thread_local Cached cached;
  if (cached.recorder != id_) cached = {id_, track("threads", cat("thread ", thread_number()), "")};
  return cached.track;
}

int StepRecorder::kernel_track(const Device& device) {
  struct Cached {
    std::uint64_t recorder = 0;
    const Device* device = nullptr;
    int track = 0;
  };
  thread_local Cached cached;
  if (cached.recorder != id_ || cached.device != &device) {
    cached = {id_, &device,
              track(device.name(), cat("thread ", thread_number()), device_kind(device))};
  }
  return cached.track;
}

int StepRecorder::stream_track(const Device& device, StreamKind kind, int index) {
  return track(device.name(), cat(stream_name(kind), index), device_kind(device));
}

int StepRecorder::waiting_track(const Device& device) {
  return track(device.name(), "waiting", "", true);
}

std::vector<profiler::Track> StepRecorder::tracks() const {
  std::lock_guard lock(mutex_);
  return tracks_;
}

std::vector<const RecordedPlan*> StepRecorder::plans() const {
  std::lock_guard lock(mutex_);
  std::vector<const RecordedPlan*> plans;
  for (const auto& [id, plan] : plans_) plans.push_back(plan.get());
  return plans;
}

std::vector<std::string> StepRecorder::kinds() const {
  std::lock_guard lock(mutex_);
  return kinds_;
}

// ---- Events ----

void StepRecorder::kernel(int track, const RecordedNode& node, Time begin, Time end, double bytes) {
  Record record;
  record.track = track;
  record.node = &node;
  record.begin = begin;
  record.end = end;
  record.bytes = bytes < 0 ? node.bytes : bytes;
  push(record);
}

void StepRecorder::eager(int track, std::string_view op, Time begin, Time end, double bytes) {
  Record record;
  record.track = track;
  record.name = text(op);
  record.begin = begin;
  record.end = end;
  record.bytes = bytes;
  push(record);
}

void StepRecorder::copy(const CopySpan& span) {
  Record record;
  record.kind = profiler::EventKind::kCopy;
  record.track = span.track;
  record.from = text(span.from);
  record.to = text(span.to);
  record.name =
      text(span.maker ? span.output ? cat(span.maker->name(), ':', span.output) : span.maker->name()
                      : std::string(span.name));
  record.plan = span.plan;
  if (span.plan && span.maker &&
      static_cast<std::size_t>(span.maker->id()) < span.plan->nodes.size()) {
    record.node = &span.plan->of(*span.maker);
  }
  record.begin = span.begin;
  record.end = span.end;
  record.bytes = span.bytes;
  push(record);
}

void StepRecorder::thread_event(profiler::EventKind kind, std::string_view name, Time begin,
                                Time end) {
  Record record;
  record.kind = kind;
  record.track = thread_track();
  record.name = text(name);
  record.begin = begin;
  record.end = end;
  push(record);
}

void StepRecorder::input(std::string_view pipeline, std::string_view stages, Time begin, Time end) {
  Record record;
  record.kind = profiler::EventKind::kInput;
  record.track = track("input", cat("for thread ", thread_number()), "");
  record.name = text(pipeline);
  record.detail = text(stages);
  record.begin = begin;
  record.end = end;
  push(record);
}

void StepRecorder::hardware(const Device& device, const HardwareEvent& event) {
  if (event.begin_ns < started_ || event.end_ns < event.begin_ns) return;
  Record record;
  record.kind = profiler::EventKind::kHardware;
  record.track = track(device.name(), cat("hardware ", event.stream), "");
  record.name = text(event.name);
  record.begin = event.begin_ns;
  record.end = event.end_ns;
  record.bytes = event.bytes;
  push(record);
}

void StepRecorder::hear_of_memory(const MemoryChange& change) noexcept {
  std::shared_ptr<StepRecorder> recorder;
  {
    std::lock_guard lock(started_by_profiler().mutex);
    recorder = started_by_profiler().recorder;
  }
  if (!recorder || !recorder->memory_) return;
  try {
    recorder->memory(change);
  } catch (const std::exception&) {
    recorder->dropped_.fetch_add(1, std::memory_order_relaxed);  // no memory for it
  }
}

void StepRecorder::memory(const MemoryChange& change) {
  const std::string_view device = change.device.empty() ? "host" : change.device;
  const std::string_view holder = AllocationScope::current();
  Record record;
  record.kind = profiler::EventKind::kMemory;
  record.track = track("memory", std::string(device), "");
  record.name = text(holder.empty() ? FunctionSpan::current() : holder);
  record.to = text(device);
  record.begin = record.end = now();
  record.bytes = static_cast<double>(change.bytes) * (change.released ? -1 : 1);
  record.block = reinterpret_cast<std::uintptr_t>(change.block);
  record.in_use = static_cast<double>(change.in_use);
  push(record);
}

double StepRecorder::bytes_of(const KernelContext& context) {
  double bytes = 0;
  for (int i = 0; i < context.num_inputs(); ++i) bytes += array_bytes(context.input(i));
  for (int i = 0; i < context.num_outputs(); ++i) bytes += array_bytes(*context.outputs_[i]);
  return bytes;
}

// ---- The ring ----

StepRecorder::Slot& StepRecorder::slot(std::uint64_t number) {
  const std::uint64_t index = number % capacity_;
  std::atomic<Chunk*>& place = chunks_[index / kChunk];
  Chunk* chunk = place.load(std::memory_order_acquire);
  if (!chunk) {
    auto fresh = std::make_unique<Chunk>();
    if (place.compare_exchange_strong(chunk, fresh.get(), std::memory_order_acq_rel))
      chunk = fresh.release();
  }
  return chunk->slots[index % kChunk];
}

// A slot is taken while it is written, and for good once the ring has been read.
void StepRecorder::push(const Record& record) {
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  if (number >= capacity_) dropped_.fetch_add(1, std::memory_order_relaxed);
  Slot& s = slot(number);
  if (s.taken.exchange(true, std::memory_order_acquire)) {
    if (number < capacity_) dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  s.record = record;
  s.taken.store(false, std::memory_order_release);
}

std::vector<StepRecorder::Record> StepRecorder::close() {
  std::vector<Record> records;
  const std::uint64_t used = std::min(next_.load(std::memory_order_relaxed), capacity_);
  records.reserve(used);
  for (std::uint64_t i = 0; i < used; ++i) {
    Slot& s = slot(i);
    while (s.taken.exchange(true, std::memory_order_acquire)) {
    }
    if (s.record.track >= 0) records.push_back(s.record);
  }
  std::stable_sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  return records;
}

// ---- Calls of functions ----

std::string_view FunctionSpan::current() {
  return current_function ? std::string_view(*current_function) : std::string_view();
}

void FunctionSpan::begin(const std::string& name) {
  recorder_ = StepRecorder::active();
  if (!recorder_) return;
  name_ = &name;
  outer_ = std::exchange(current_function, &name);
  begin_ = StepRecorder::now();
}

void FunctionSpan::end() {
  current_function = outer_;
  recorder_->thread_event(profiler::EventKind::kFunction, *name_, begin_, StepRecorder::now());
}

}  // namespace tandem
