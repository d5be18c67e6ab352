#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/memory_listener.h"
#include "tandem/device/device.h"
#include "tandem/device/hardware_trace.h"
#include "tandem/graph/graph.h"
#include "tandem/runtime/profiler.h"

namespace tandem {

class KernelContext;

struct RecordedPlan;

/// What a recording keeps of a node, which may be gone before the recording is read.
struct RecordedNode {
  const RecordedPlan* plan = nullptr;
  std::string name;
  std::string op;
  std::string key;          ///< CostProfile::key
  std::vector<int> inputs;  ///< ids of the nodes that made its inputs, before any copies
  double bytes = 0;         ///< of inputs and outputs, as far as shapes are known
};

/// The nodes of one plan.
struct RecordedPlan {
  std::string function;
  std::vector<RecordedNode> nodes;  ///< by node id; those that run nothing are empty
  const RecordedNode& of(const Node& node) const {
    return nodes[static_cast<std::size_t>(node.id())];
  }
};

/// Takes what executors report of one recording's steps; a step carries its recorder along:
///
///     if (StepRecorder* recorder = within.recorder) {              // StepContext, once a run
///       const RecordedPlan& plan = recorder->plan(plan_id, each_node);
///       const int track = recorder->stream_track(device, StreamKind::kCompute, 0);
///       …
///       const auto begin = StepRecorder::now();                    // around the kernel
///       recorder->kernel(track, plan.of(node), begin, StepRecorder::now());
///     }
///
/// Who begins the step keeps it alive. Several may record side by side. Thread-safe, and cheap: an
/// event is a few stores into a ring that no lock guards.
class StepRecorder : public std::enable_shared_from_this<StepRecorder> {
 public:
  using Time = std::int64_t;  ///< nanoseconds of the steady clock

  /// What records the steps that the calling thread begins: its own recording, else the one that
  /// `profiler::start` has begun, or null. One relaxed load where nothing records.
  static std::shared_ptr<StepRecorder> active() {
    return on() ? of_this_thread() : std::shared_ptr<StepRecorder>();
  }
  /// Whether anything records.
  static bool on() { return recording_.load(std::memory_order_relaxed) != 0; }
  static Time now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  /// For plans: a number that no other plan of the process has.
  static std::uint64_t new_plan_id();

  /// The nodes of a plan, noted at the plan's first run in this recording. `each` calls its
  /// argument with every node that may run.
  using EachNode = std::function<void(const std::function<void(const Node&)>&)>;
  const RecordedPlan& plan(std::uint64_t plan_id, const EachNode& each);

  /// Rows of the trace. Look them up once a run; the first two are remembered for each thread.
  int thread_track();                      ///< what the calling thread does
  int kernel_track(const Device& device);  ///< kernels that the calling thread runs itself
  int stream_track(const Device& device, StreamKind kind, int index);
  int waiting_track(const Device& device);  ///< asynchronous kernels, which overlap

  /// `bytes` < 0: as the node's shapes say.
  void kernel(int track, const RecordedNode& node, Time begin, Time end, double bytes = -1);
  /// An eager call, which belongs to no node.
  void eager(int track, std::string_view op, Time begin, Time end, double bytes);
  struct CopySpan {
    int track = 0;
    const RecordedPlan* plan = nullptr;  ///< that the copy belongs to
    const Node* maker = nullptr;         ///< of the plan; null: an argument or a constant
    int output = 0;
    std::string_view name = {};  ///< where there is no maker
    std::string_view from;       ///< device names
    std::string_view to;
    double bytes = 0;
    Time begin = 0;
    Time end = 0;
  };
  void copy(const CopySpan& span);
  /// What the calling thread did between two times: a function's call, a scope.
  void thread_event(profiler::EventKind kind, std::string_view name, Time begin, Time end);

  /// The calling thread waited for a pipeline's element.
  void input(std::string_view pipeline, std::string_view stages, Time begin, Time end);

  /// What the device itself did; what lies outside of the recording is left out.
  void hardware(const Device& device, const HardwareEvent& event);

  /// Hears of all memory that is taken and released from `start` to `stop`.
  void record_memory() { memory_ = true; }

  /// Bytes of a kernel's inputs and outputs that are there.
  static double bytes_of(const KernelContext& context);

  // ---- For the profiler. ----
  struct Record {
    profiler::EventKind kind = profiler::EventKind::kKernel;
    int track = -1;
    const RecordedPlan* plan = nullptr;   // of a copy
    const RecordedNode* node = nullptr;   // of a copy: what made the value
    const std::string* name = nullptr;    // of all but kernels of nodes
    const std::string* detail = nullptr;  // of input: the stages' shares
    const std::string* from = nullptr;    // of a copy
    const std::string* to = nullptr;
    Time begin = 0;
    Time end = 0;
    double bytes = 0;
    std::uint64_t block = 0;  // of memory
    double in_use = 0;
  };
  explicit StepRecorder(std::size_t max_events);
  ~StepRecorder();
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;
  static void start(std::shared_ptr<StepRecorder> recorder);  // throws if there is one
  static std::shared_ptr<StepRecorder> stop();                // throws if there is none
  /// Counts a recording of its own, which a thread's context holds: `by` is 1 or -1.
  static void count_recording(int by) { recording_.fetch_add(by, std::memory_order_relaxed); }
  /// What the ring holds; later events are dropped.
  std::vector<Record> close();
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  std::vector<profiler::Track> tracks() const;
  /// The plans that ran, in the order in which they were made.
  std::vector<const RecordedPlan*> plans() const;
  /// For each track the kind of device under which costs are filed.
  std::vector<std::string> kinds() const;
  Time started() const { return started_; }

 private:
  TANDEM_EXPORT static std::shared_ptr<StepRecorder> of_this_thread();
  struct Slot {
    std::atomic<bool> taken{false};
    Record record;
  };
  struct Chunk;
  Slot& slot(std::uint64_t number);
  void push(const Record& record);
  static void hear_of_memory(const MemoryChange& change) noexcept;
  void memory(const MemoryChange& change);
  const std::string* text(std::string_view text);
  int track(const std::string& process, const std::string& name, const std::string& kind,
            bool overlaps = false);

  TANDEM_EXPORT static std::atomic<int> recording_;  // how many recordings go on
  const std::uint64_t id_;
  const std::uint64_t capacity_;
  const Time started_;
  bool memory_ = false;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::unique_ptr<std::atomic<Chunk*>[]> chunks_;

  mutable std::mutex mutex_;  // guards the below; what they hold never moves
  std::map<std::uint64_t, std::unique_ptr<RecordedPlan>> plans_;
  std::map<std::string, std::unique_ptr<std::string>, std::less<>> texts_;
  std::map<std::pair<std::string, std::string>, int> track_numbers_;
  std::vector<profiler::Track> tracks_;
  std::vector<std::string> kinds_;
};

/// A function's call, around all that it does on this thread. Plans that first run in it take its
/// name.
class FunctionSpan {
 public:
  explicit FunctionSpan(const std::string& name) {
    if (StepRecorder::on()) begin(name);
  }
  ~FunctionSpan() {
    if (recorder_) end();
  }
  FunctionSpan(const FunctionSpan&) = delete;
  FunctionSpan& operator=(const FunctionSpan&) = delete;
  /// The innermost function that is recorded on this thread, or "".
  static std::string_view current();

 private:
  void begin(const std::string& name);
  void end();
  std::shared_ptr<StepRecorder> recorder_;
  const std::string* name_ = nullptr;
  const std::string* outer_ = nullptr;
  StepRecorder::Time begin_ = 0;
};

}  // namespace tandem
