#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/device/reclaimable.h"
#include "tandem/graph/function.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/passes.h"
#include "tandem/runtime/execute/device_constants.h"
#include "tandem/runtime/profile/step_recorder.h"

namespace tandem {

class Runtime;

/// What the nodes of one function keep from one execution to the next, by name: its plans, for
/// other shapes and schedules, go on where another left off. Passes may give one name to different
/// nodes in the graphs for different shapes: what a stateless op keeps belongs to its op and
/// attributes too. Thread-safe.
class NodeStates {
 public:
  NodeState& of(const Node& node) {
    const bool by_name = node.op().traits.stateful;
    std::lock_guard lock(mutex_);
    std::vector<Entry>& entries = states_[node.name()];
    for (const Entry& e : entries) {
      if (e.op == node.op().name && (by_name || e.attrs == node.attrs())) return *e.state;
    }
    entries.push_back(
        {node.op().name, by_name ? AttrMap() : node.attrs(), std::make_unique<NodeState>()});
    return *entries.back().state;
  }

 private:
  struct Entry {
    std::string op;
    AttrMap attrs;
    std::unique_ptr<NodeState> state;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<Entry>> states_;
};

/// One kernel to run: its node, candidates and slots.
struct Step {
  const Node* node = nullptr;
  const KernelList* kernels = nullptr;
  int device = 0;  ///< index in Runtime::devices()
  NodeState* state = nullptr;
  std::vector<int> inputs;   ///< slots
  std::vector<int> outputs;  ///< slots
  std::vector<DType> output_dtypes;
  std::uint64_t planned_outputs = 0;
  std::uint64_t owned_inputs = 0;  ///< inputs that this step is the last to read
  std::vector<int> release;        ///< slots to empty afterwards
  std::vector<int>
      before;  ///< steps that must have succeeded: producers and control inputs (each once)
  std::vector<int> after;     ///< the reverse
  bool asynchronous = false;  ///< some candidate may wait
};

struct PlacedFunction;  // tandem/runtime/internal/placed_function.h

/// In which order the steps of a plan may run.
enum class Schedule {
  kSequential,  ///< one after the other, as they stand
  kDataflow,    ///< each as soon as what it depends on is done, several at a time
};

/// How one function runs for one set of argument shapes: kernels chosen, slots numbered, last uses
/// known, values of known shape placed in an arena. Immutable and shared by threads, but for the
/// pool of frames that calls take.
class Plan : private Reclaimable {
 public:
  /// `states` outlives the plan.
  Plan(Runtime& runtime, const MutableFunction& function, const std::vector<Shape>& arg_shapes,
       Schedule schedule, NodeStates& states);
  /// For several devices; a dataflow plan.
  Plan(Runtime& runtime, std::shared_ptr<const PlacedFunction> placed, NodeStates& states);
  ~Plan() override;

  /// What a call needs of its own: values by slot, arena, contexts filled in. Used by one call at a
  /// time.
  struct Frame;
  std::unique_ptr<Frame> acquire_frame();
  /// Empties the slots of arguments and results, then keeps the frame for the next call.
  void release(std::unique_ptr<Frame> frame);

  /// The steps that make results in memory of their own make them in these places, one for each
  /// result, where the shapes agree; undefined ones leave the choice to the step. To be taken back
  /// after the run.
  void place_results(Frame& frame, std::span<const Array> places) const;
  void forget_places(Frame& frame) const;

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<int>& arg_slots() const { return arg_slots_; }
  const std::vector<int>& result_slots() const { return result_slots_; }
  /// Of the values that are placed in the arena of a memory space (0: the host's).
  std::size_t arena_bytes(int memory = 0) const {
    return arena_bytes_[static_cast<std::size_t>(memory)];
  }
  int slot_memory(int slot) const {
    return slot_memory_.empty() ? 0 : slot_memory_[static_cast<std::size_t>(slot)];
  }
  const MutableFunction& function() const { return *function_; }
  /// Constants that the first call brings to devices' memories; frames hold their places.
  DeviceConstants& device_constants() const { return brought_; }
  /// The slots of them.
  const std::vector<int>& brought_slots() const { return brought_slots_; }
  int num_slots() const { return num_slots_; }
  int slot_of(Output output) const;
  /// Frames that wait for a call.
  std::size_t idle_frames() const;
  Schedule schedule() const { return schedule_; }
  bool has_asynchronous_steps() const;
  /// For the profiler; no other plan has it.
  std::uint64_t id() const { return id_; }
  /// Of the first CPU.
  const KernelServices& services() const { return *services_.front(); }
  /// How many steps read a slot before it is released; 0 for slots that no step releases.
  const std::vector<int>& readers() const { return readers_; }

 private:
  struct PlannedSlot {
    int slot;
    DType dtype;
    Shape shape;
    std::size_t offset;
    int memory;
  };
  friend struct Frame;
  void number_slots(const std::vector<Node*>& order);
  void make(Runtime& runtime, NodeStates& states);
  void make_steps(Runtime& runtime, const std::vector<Node*>& order, NodeStates& states);
  Array constant_at(const Node& node, int slot);
  void plan_lifetimes();
  struct Lifetimes;
  void place_values(Lifetimes& lifetimes);
  void plan_releases();
  void name_arenas();
  void reclaim() override;  // that of frames which no call uses

  const std::uint64_t id_ = StepRecorder::new_plan_id();
  Schedule schedule_;
  std::unique_ptr<const MutableFunction> own_;    // with the shapes that these arguments give
  std::shared_ptr<const PlacedFunction> placed_;  // null: all on the host
  const MutableFunction* function_;               // in one of the above
  std::vector<std::shared_ptr<Device>> devices_;
  std::vector<int> first_slot_;  // by node id
  int num_slots_ = 0;
  std::vector<Step> steps_;
  std::vector<int> arg_slots_;
  std::vector<int> result_slots_;
  struct Maker {
    int step = -1, output = 0;  // -1: the result shares memory, or is no plain value
  };
  void find_makers();
  std::vector<Maker> makers_;       // of the results
  std::vector<int> cleared_slots_;  // after each call: what no step releases
  std::vector<std::pair<int, Array>> constants_;
  mutable DeviceConstants brought_;
  std::vector<int> brought_slots_;
  std::vector<PlannedSlot> planned_;
  std::vector<int> slot_memory_;          // empty: all in the host's
  std::vector<std::size_t> arena_bytes_;  // by memory space
  std::vector<std::string> arena_names_;  // likewise
  std::vector<int> readers_;
  std::vector<const KernelServices*> services_;  // by device

  mutable std::mutex frames_mutex_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<KeeperRegistration> kept_;  // last: gone before what is given up
};

struct Plan::Frame {
  explicit Frame(const Plan& plan);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  std::vector<Array> values;                 // by slot
  std::vector<KernelContext> contexts;       // by step
  std::vector<const Array*> input_pointers;  // what the contexts point into
  std::vector<Array*> output_pointers;
};

/// `function` as it is for arguments of these shapes.
MutableFunction with_shapes(const MutableFunction& function, const std::vector<Shape>& arg_shapes);

}  // namespace tandem
