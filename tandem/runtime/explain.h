#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/kernel_choice.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/profiler.h"
#include "tandem/runtime/structure.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {

/// Where each op of a function runs and why, what is copied, what a step costs, and what would make
/// it faster:
///
///     std::cout << td::explain(step, x, y);            // text, the summary first
///     td::explain(step, x, y).save_html("step.html");  // the graph, a timeline, all tables
///
/// Expected times come from the cost model on a virtual clock; measured ones from a profile, if
/// there is one. All times are in seconds, all sizes in bytes; indices refer to the vectors of this
/// struct. A plain value.
struct TANDEM_EXPORT Explanation {
  struct Device {
    std::string name;        ///< full
    std::string short_name;  ///< "GPU:0"; of several tasks "/job:worker/task:1/GPU:0"
    std::string task;        ///< "/job:worker/task:1"
    int ops = 0;
    double seconds = 0;       ///< of expected work, of all streams together
    double busy = 0;          ///< share of the step, 0 to 1
    double memory_peak = 0;   ///< bytes of values alive at a time, and of variables
    double memory_limit = 0;  ///< bytes; 0: none
    std::string lost;         ///< why the device is lost, if it is: nothing is placed on it
    /// (time in the step, bytes held from then on), by time.
    std::vector<std::pair<double, double>> memory;
  };
  struct Op {
    std::string name;
    std::string op;
    std::string where;  ///< the user's code line, if known
    int device = 0;
    PlacedBy by = PlacedBy::kGreedy;
    std::string reason;
    std::vector<std::string> refused;  ///< "GPU:0: no kernel for string"
    std::string asked;                 ///< the device asked for by scope or graph; empty: none
    double bytes = 0;                  ///< of its outputs
    double seconds = 0;                ///< expected
    bool cost_measured = false;        ///< and that comes from a cost profile
    double begin = -1;                 ///< expected, from the step's beginning; -1: does no work
    std::optional<profiler::NodeTime> measured;  ///< nothing: no profile, or not in it
    std::vector<int> inputs;                     ///< ops
    std::vector<int> controls;                   ///< ops it waits for
    bool is_constant = false;
    /// Where its kernel has several implementations: which one runs, and what was measured.
    std::optional<KernelChoice> kernel;
  };
  struct Copy {
    std::string value;       ///< "dense/MatMul" or "split:1"
    int maker = 0;           ///< op
    std::vector<int> users;  ///< ops that need it there
    int from = 0;            ///< devices
    int to = 0;
    double bytes = 0;
    double seconds = 0;              ///< expected
    double begin = -1;               ///< expected
    double per_step = 1;             ///< times a step; where it was measured, the mean
    std::string loop;                ///< of an op in a loop: once an iteration of this
    std::optional<double> measured;  ///< seconds
  };
  /// All that goes over the network from one task to another.
  struct Transfer {
    int from = 0;  ///< devices: the hosts of the two tasks
    int to = 0;
    std::vector<int> copies;  ///< the longest first
    double bytes = 0;         ///< a step
    double seconds = 0;       ///< a step, expected
  };
  /// Ops that became one node, or could have and did not.
  struct Fusion {
    std::string ops;   ///< "Conv2D + BiasAdd + Relu"
    std::string node;  ///< the node that computes them; the last of them if they were not fused
    std::string op;    ///< "_FusedConv2D"; may be empty if they were not fused
    int device = 0;
    bool made = false;
    std::string reason;  ///< why not: "class cuda has no kernel for _FusedConv2D"
    std::string text;    ///< all of it as a line
  };
  /// A stay on another device that costs more on the way than is done there.
  struct RoundTrip {
    int at = 0;               ///< the device
    std::vector<int> there;   ///< copies
    std::vector<int> back;    ///< copies
    std::vector<int> ops;     ///< that cause it
    double copy_seconds = 0;  ///< both ways
    double work_seconds = 0;
    double bytes = 0;
    std::string text;
  };
  using BackAndForth [[deprecated("use RoundTrip")]] = RoundTrip;
  /// A change that was simulated.
  struct Advice {
    std::string text;
    std::vector<int> ops;  ///< to move; empty: something else is advised
    int to = -1;           ///< their device; -1: they go to several
    double step_seconds = 0;
    double gain = 0;  ///< seconds a step
  };
  /// A piece of a step on the virtual clock.
  struct Span {
    int device = 0;
    int stream = 0;  ///< 0, 1, …: compute; -1: copies in; -2: copies out
    int op = -1;     ///< or
    int copy = -1;
    double begin = 0;
    double end = 0;
  };

  std::string title;
  std::string policy;       ///< "greedy" or "cost"
  double step_seconds = 0;  ///< expected; 0 where it could not be simulated
  std::optional<double> measured_step;
  std::int64_t measured_runs = 0;
  /// The share of the time from the first measured call to the end of the last that consumers of
  /// datasets spent in Iterator::next: waiting for input. Nothing where there were none.
  std::optional<double> input_waiting;
  std::int64_t plans_made = 0;    ///< for calls of the function so far (plan_stats.h)
  std::int64_t plans_shared = 0;  ///< of those, for sizes that vary
  int costs_measured = 0;         ///< number of ops whose expected time comes from a cost profile
  std::vector<Device> devices;
  std::vector<Op> ops;  ///< in the order of the graph: inputs first
  std::vector<Copy> copies;
  std::vector<Transfer> network;  ///< between tasks; the longest first
  std::vector<RoundTrip> back_and_forth;
  std::vector<Fusion> fusions;     ///< those that were not made first; of `explain_placement` none
  std::vector<int> host_reads;     ///< copies: small values read back to their task's host
  std::vector<Advice> advice;      ///< the largest gain first
  std::vector<Span> spans;         ///< by beginning
  std::vector<std::string> notes;  ///< what this explanation could not take in

  double copied_bytes() const;
  double copy_seconds() const;
  double network_bytes() const;
  double network_seconds() const;

  /// Rows beyond `most_rows` of a table are counted instead of shown; with 0 there are no tables of
  /// copies and ops.
  std::string to_text(std::size_t most_rows = 60) const;
  /// What this struct holds; ops and devices by name instead of index.
  std::string to_json() const;
  /// One page that needs nothing else. Of large graphs the important parts are drawn; it says so.
  std::string to_html() const;
  /// Throws what writing a file throws: NotFoundError, PermissionDeniedError, …
  void save_html(const std::string& path) const;
};

TANDEM_EXPORT std::ostream& operator<<(std::ostream& out, const Explanation& explanation);

struct ExplainOptions {
  /// Nothing: the runtime's, and for a call that would run on another task of a cluster
  /// (tandem/distribute/connect.h) also those of all its tasks.
  std::optional<DeviceSet> devices = std::nullopt;
  std::optional<PlacementOptions> placement = std::nullopt;  ///< nothing: as the runtime places
  std::shared_ptr<const CostProfile> costs = nullptr;  ///< null: the placement profile in force
  /// A recording of calls of the function. Its times also serve as costs if there are no others.
  std::optional<profiler::Profile> profile = std::nullopt;
  bool advice = true;  ///< simulate what might be better
};

/// Explains a graph that has been placed. `function`: as the profile calls it. Starts no runtime;
/// the others below start the thread's.
TANDEM_EXPORT Explanation explain_placement(const Graph& graph, const Placement& placement,
                                            const CostModel& costs, const KernelRegistry& kernels,
                                            const std::string& function,
                                            const PlacementOptions& options = {},
                                            const profiler::Profile* profile = nullptr,
                                            bool advice = true);

/// Explains a function as it is optimized and placed for arguments of these shapes (any number of
/// unknown dimensions) that lie in host memory. Throws what tracing's shape inference and placing
/// throw.
TANDEM_EXPORT Explanation explain_function(const Function& function,
                                           const std::vector<PartialShape>& arg_shapes,
                                           const ExplainOptions& options = {});

/// Explains a trace as a call with these arguments would run it; where they are counts. Nothing
/// runs. Throws InvalidArgumentError for arguments of other number, dtype or shape, and what
/// placing throws: a device that can't be had without soft placement, say.
TANDEM_EXPORT Explanation explain_call(const ConcreteFunction& function,
                                       std::span<const Tensor> args,
                                       const ExplainOptions& options = {});

/// Explains a call of a traced function, which is traced if it was not yet, but not run.
template <class F, class... Args>
Explanation explain(const ExplainOptions& options, const TracedFunction<F>& function,
                    const Args&... args) {
  StructureWriter writer;
  const typename TracedFunction<F>::Arguments arguments{args...};
  Structure<typename TracedFunction<F>::Arguments>::write(arguments, writer);
  return explain_call(function.concrete(args...), writer.tensors, options);
}
template <class F, class... Args>
Explanation explain(const TracedFunction<F>& function, const Args&... args) {
  return explain(ExplainOptions(), function, args...);
}

}  // namespace tandem
