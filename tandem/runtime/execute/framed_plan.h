#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/passes.h"
#include "tandem/runtime/execute/executable.h"
#include "tandem/runtime/profile/step_recorder.h"

namespace tandem {

class FramedRun;
class InterOpPool;
class NodeStates;
class Runtime;
struct Placement;

/// One node of a graph with TensorFlow 1 control flow. Steps are numbered through the whole graph;
/// each has a place (`local`) and slots for its inputs and outputs in every iteration of its frame.
struct FramedStep {
  /// Where an output goes: an input of a step, or (step -1) a result of the function.
  struct Edge {
    int output;
    int step;
    int input;
  };
  const Node* node = nullptr;
  NodeKind kind = NodeKind::kPlain;
  const KernelList* kernels = nullptr;
  NodeState* state = nullptr;
  const KernelServices* services = nullptr;
  Device* accelerator = nullptr;   ///< whose stream runs it; null: a host thread
  std::uint32_t host_outputs = 0;  ///< see KernelContext
  bool asynchronous = false;       ///< calls functions that may wait
  int frame = 0;
  int local = 0;
  int first_input = 0;
  int num_inputs = 0;
  int first_output = 0;
  int num_outputs = 0;
  std::vector<Edge> edges;         ///< by output
  std::vector<int> control_edges;  ///< steps that wait for this one
  int enters = -1;                 ///< for an Enter: the frame it leads into
  bool is_constant = false;        ///< for an Enter: into every iteration
  bool runs_when_dead = false;     ///< a ControlTrigger
  int arg = -1;                    ///< for an argument: which
  Array constant;                  ///< for a constant
};

/// What the iterations of a loop (or the one iteration of the graph itself) have in common.
struct FramedLoop {
  std::string name;  ///< of its Enters
  int parent = -1;
  int child = 0;  ///< its position among its parent's loops
  int num_children = 0;
  int parallel_iterations = 1;
  int num_enters = 0;  ///< that lead into it
  int num_inputs = 0;
  int num_outputs = 0;
  std::vector<int> steps;    ///< by `local`
  std::vector<int> waiting;  ///< by `local`: inputs and control inputs; for a Merge: control inputs
  std::vector<int> exits;    ///< steps
};

/// How a function whose graph holds Switch, Merge, Enter, Exit and NextIteration runs, for any
/// shapes of its arguments. Immutable, but for what it learns of the steps' costs and a pool of
/// states for calls. Thread-safe.
class FramedPlan final : public Executable {
 public:
  /// `placement`, if given, says on which of the runtime's devices each node runs.
  FramedPlan(Runtime& runtime, std::shared_ptr<const MutableFunction> function,
             std::shared_ptr<NodeStates> states, const Placement* placement = nullptr);
  ~FramedPlan() override;

  std::vector<Array> run(std::vector<Array> args, const StepContext& within) override;
  void run_async(std::vector<Array> args, const StepContext& within,
                 FunctionRunner::Done done) override;
  const Plan* next_plan() override { return nullptr; }

  const std::vector<FramedStep>& steps() const { return steps_; }
  const std::vector<FramedLoop>& loops() const { return loops_; }
  std::size_t num_results() const { return function_->results.size(); }
  /// True if values may lie in several memories.
  bool several_memories() const { return several_memories_; }
  /// True if values are sent to other parts of the step, or received.
  bool has_transfers() const { return has_transfers_; }
  const Device& host() const { return host_; }
  /// For the profiler; no other plan has it.
  std::uint64_t id() const { return id_; }
  InterOpPool& pool() const { return pool_; }
  /// 0, 1, …: what a Merge says of which input it took.
  const Array& index(int i) const { return indices_[static_cast<std::size_t>(i)]; }

  /// A step is worth another thread's while if it takes long and does not share its work itself.
  bool worth_sharing(int step) const {
    return costs_[static_cast<std::size_t>(step)].heavy.load(std::memory_order_relaxed);
  }
  /// The first runs of each step are timed.
  bool wants_time(int step) const {
    return costs_[static_cast<std::size_t>(step)].runs.load(std::memory_order_relaxed) < kTimed;
  }
  void add_time(int step, double seconds, bool parallel_inside) const;

 private:
  static constexpr int kTimed = 4;
  struct Cost {
    std::atomic<int> runs{0};
    std::atomic<bool> heavy{false};
  };
  void make_steps(Runtime& runtime, const std::vector<Node*>& order, const Placement* placement);
  void connect(const std::vector<Node*>& order);
  std::unique_ptr<FramedRun> acquire_run();
  void release(std::unique_ptr<FramedRun> run);

  const std::uint64_t id_ = StepRecorder::new_plan_id();
  const std::shared_ptr<const MutableFunction> function_;
  InterOpPool& pool_;
  const Device& host_;
  const bool several_memories_;
  bool has_transfers_ = false;
  std::vector<int> step_of_;  // by node id
  std::vector<FramedStep> steps_;
  std::vector<FramedLoop> loops_;
  std::vector<Array> indices_;
  const std::shared_ptr<NodeStates> states_;
  std::unique_ptr<Cost[]> costs_;

  std::mutex runs_mutex_;
  std::vector<std::unique_ptr<FramedRun>> runs_;
};

}  // namespace tandem
