#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"

namespace tandem {

class CostProfile;   // tandem/placement/cost_profile.h
class StepRecorder;  // tandem/runtime/profile/step_recorder.h

/// Records what ran where and when:
///
///     td::profiler::start();
///     {
///       td::profiler::Scope user("data loading");
///       …
///     }
///     td::profiler::Profile profile = td::profiler::stop();
///     profile.save("trace.json");           // for chrome://tracing and ui.perfetto.dev
///     profile.costs().save("costs.json");   // for td::config::set_placement_profile
///
/// `start` records all steps that have no recording of their own; a `Recording` has those of one
/// thread. While nothing records, a run looks at one flag. With `start` the GPUs that are there
/// report, where CUPTI is found, when they themselves ran what they were given
/// (EventKind::kHardware).
namespace profiler {

struct Options {
  static constexpr std::size_t kMaxEvents = 1'000'000'000;
  [[deprecated("use kMaxEvents")]] static constexpr std::size_t kMostEvents = kMaxEvents;
  /// From 1 to kMaxEvents; of more the latest are kept. Some 80 bytes each, taken as they come.
  std::size_t max_events = 500'000;
  /// Blocks of memory over 1 KiB that are taken and released, on all threads. For `start` alone.
  bool memory = false;
};

enum class EventKind : std::uint8_t {
  kKernel,    ///< one run of a node's or an eager call's kernel
  kCopy,      ///< a value on its way from one device's memory to another's
  kFunction,  ///< one call of a traced function
  kScope,     ///< a `Scope` of the user's code
  kInput,     ///< the consumer of a dataset in Iterator::next: it waits for input
  kMemory,    ///< a block of memory was taken or released
  kHardware,  ///< a kernel or transfer as a GPU itself did it, by its driver's report
};

/// A row of the trace, on which events follow each other: a device's stream, or a thread.
struct Track {
  std::string process;    ///< the device's name, "threads", "input" or "memory"
  std::string name;       ///< "compute 0", "copy in 0", "thread 1", "waiting", "hardware 7"
  bool overlaps = false;  ///< its events need not end before the next one begins
};

/// Views are valid as long as any copy of the Profile.
struct Event {
  EventKind kind = EventKind::kKernel;
  int track = 0;              ///< in `Profile::tracks()`
  std::string_view name;      ///< of node, function or scope; the copied value's
  std::string_view op;        ///< of a kernel; of input: what work the stages had since the last
                              ///< time, "ParallelMap 71 %, Batch 29 %"
  std::string_view function;  ///< that the node belongs to
  double begin = 0;           ///< seconds since the start
  double end = 0;
  double bytes = 0;       ///< read and written; copied; taken, negative for released
  std::string_view from;  ///< of a copy: device names
  std::string_view to;
  // ---- Of memory, whose `name` is what asked for it, and `to` the device's. ----
  std::uint64_t block = 0;  ///< its address
  double in_use = 0;        ///< on the device, afterwards
};

/// How long one node took.
struct NodeTime {
  std::int64_t runs = 0;
  double seconds = 0;  ///< the mean, without the first (which pays for caches) if there is a second
};

/// A function as it ran, after all passes: its nodes that run, without arguments and constants.
struct FunctionGraph {
  struct Node {
    std::string name;
    std::string op;
    std::vector<int> inputs;  ///< indices of nodes, which come before their readers but in loops
  };
  std::string function;  ///< "" for one that no call named
  std::vector<Node> nodes;
};

/// What was recorded. A shared handle, immutable.
class TANDEM_EXPORT Profile {
 public:
  Profile();

  const std::vector<Track>& tracks() const;
  /// In order of their beginning.
  const std::vector<Event>& events() const;
  /// Events that came before those kept, or while a run still went on after the end.
  std::uint64_t dropped() const;
  /// From start to stop.
  double seconds() const;
  /// When the recording began, in nanoseconds since 1970.
  std::int64_t wall_start_ns() const;
  /// The functions that ran, one for each plan.
  std::vector<FunctionGraph> function_graphs() const;
  /// By name, of the nodes of one function, or of all.
  std::map<std::string, NodeTime, std::less<>> node_times(std::string_view function = {}) const;
  /// What nodes cost on each kind of device, for a CostModel.
  CostProfile costs() const;

  /// The trace format of Chrome and Perfetto: a process for each device, with a row for each
  /// stream; copies are tied by arrows to what made the value and to what uses it.
  std::string to_json() const;
  /// Throws the file system's error.
  void save(const String& path) const;

  struct Data;
  explicit Profile(std::shared_ptr<const Data> data);

 private:
  std::shared_ptr<const Data> data_;
};

/// Throws FailedPreconditionError if a recording is going on.
TANDEM_EXPORT void start(const Options& options = {});
/// Throws FailedPreconditionError if none is.
TANDEM_EXPORT Profile stop();
/// Whether what the calling thread does is recorded.
TANDEM_EXPORT bool running();

/// Records the steps of the thread that makes it, and what they do on other threads, but no other
/// steps: several threads may record theirs side by side. For a block, like a scope; `stop` and the
/// end of the block belong to the same thread.
///
///     td::profiler::Recording recording;
///     model(x);
///     td::profiler::Profile profile = recording.stop();
class TANDEM_EXPORT Recording {
 public:
  explicit Recording(const Options& options = {});
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Ends it. Throws FailedPreconditionError the second time.
  Profile stop();

 private:
  void end();
  std::shared_ptr<StepRecorder> recorder_;  // null once it has ended
  std::shared_ptr<StepRecorder> saved_;
};

/// The calling thread was in `pipeline` for an element between two times. Nothing happens while
/// it does not record.
TANDEM_EXPORT void record_input(std::string_view pipeline, std::string_view stages,
                                std::chrono::steady_clock::time_point begin,
                                std::chrono::steady_clock::time_point end);

/// Names what the thread does in a block.
class TANDEM_EXPORT Scope {
 public:
  explicit Scope(StringView name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  std::string name_;
  std::int64_t begin_ = -1;  ///< -1: not recorded
};

}  // namespace profiler
}  // namespace tandem
