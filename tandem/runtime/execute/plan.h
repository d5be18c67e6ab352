#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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
#include "tandem/graph/node_states.h"
#include "tandem/graph/passes.h"
#include "tandem/runtime/execute/device_constants.h"
#include "tandem/runtime/execute/varying_sizes.h"
#include "tandem/runtime/profile/step_recorder.h"

namespace tandem {

class HostMemoryReader;
class Runtime;

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

/// The shapes of arguments that a plan serves.
struct ArgShapes {
  std::vector<PartialShape> shapes;
  std::shared_ptr<const VaryingSizes> varying;  ///< the sizes left open; null: all are known
};

/// How one function runs for one set of argument shapes, or for all that differ in some sizes:
/// kernels chosen, slots numbered, last uses known, values of known shape placed in an arena.
/// Immutable and shared by threads, but for the pool of frames that calls take, and the arenas'
/// layouts where sizes vary.
class Plan : private Reclaimable {
 public:
  /// `states` outlives the plan.
  Plan(Runtime& runtime, const MutableFunction& function, const ArgShapes& arg_shapes,
       Schedule schedule, NodeStates& states);
  /// For several devices; a dataflow plan.
  Plan(Runtime& runtime, std::shared_ptr<const PlacedFunction> placed, NodeStates& states);
  ~Plan() override;

  /// What a call needs of its own: values by slot, arena, contexts filled in. Used by one call at a
  /// time.
  struct Frame;
  /// For a call with these arguments.
  std::unique_ptr<Frame> acquire_frame(std::span<const Array> args) {
    std::unique_ptr<Frame> frame = idle_frame();
    if (varying_) fit(*frame, args);
    return frame;
  }
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
  /// What a call with these arguments would allocate for its arenas, by memory space (0: the
  /// host's): nothing if `idle_frames` of these have memory enough.
  std::vector<std::size_t> arena_bytes(std::span<const Array> args) const;
  int slot_memory(int slot) const {
    return slot_memory_.empty() ? 0 : slot_memory_[static_cast<std::size_t>(slot)];
  }
  const MutableFunction& function() const { return *function_; }
  /// Constants that the first call uploads to devices' memories; frames hold their places.
  DeviceConstants& device_constants() const { return device_constants_; }
  /// The slots of them.
  const std::vector<int>& constant_slots() const { return constant_slots_; }
  int num_slots() const { return num_slots_; }
  int slot_of(Output output) const;
  /// Frames that wait for a call, and have memory for one with these arguments.
  std::size_t idle_frames(std::span<const Array> args) const;
  /// Bytes in the arenas of all frames that wait.
  std::size_t idle_bytes() const;
  /// Bytes of everything else, roughly.
  std::size_t plan_bytes() const;
  void free_idle_frames() { reclaim(); }
  Schedule schedule() const { return schedule_; }
  bool has_asynchronous_steps() const;
  /// For the profiler; no other plan has it.
  std::uint64_t id() const { return id_; }
  /// The services of the first CPU.
  const KernelServices& services() const { return *services_.front(); }
  /// How many steps read a slot before it is released; 0 for slots that no step releases.
  const std::vector<int>& readers() const { return readers_; }

 private:
  struct PlannedSlot {
    int slot;
    DType dtype;
    SymbolicShape shape;
    int value;  ///< in values_
    int memory;
  };
  // What takes a place in an arena: a slot, or several that lie in one place after each other.
  struct ArenaValue {
    SymbolicShape shape;
    std::size_t element_bytes;
    int memory;
    int begins;  ///< the first step that touches it
    /// Steps after which it is free. What takes the place over runs after all of those before it,
    /// so its own stand for them. Empty once the plan is made.
    std::vector<int> touched;
  };
  // Where the values lie, in calls whose sizes are at most these.
  struct Layout {
    std::vector<std::int64_t> capacity;  ///< by symbol
    std::vector<std::size_t> offsets;    ///< by value
    std::vector<std::size_t> bytes;      ///< of the arenas, by memory space
  };
  // An argument that a device's kernels read in the host's memory.
  struct HostRead {
    HostMemoryReader* reader;
    DType dtype;
    Shape shape;
  };
  friend struct Frame;
  void number_slots(const std::vector<Node*>& order);
  void make(Runtime& runtime, NodeStates& states);
  void make_steps(Runtime& runtime, const std::vector<Node*>& order, NodeStates& states);
  Array constant_at(const Node& node, int slot);
  void plan_lifetimes();
  struct Lifetimes;
  void choose_host_reads(Lifetimes& lifetimes);
  void choose_planned_values(const Lifetimes& lifetimes);
  void plan_releases(const Lifetimes& lifetimes);
  void name_arenas();
  bool has_arena(int memory) const;
  // Gives values of one memory their places: their indices, their sizes, offsets to be set; returns
  // the arena's size.
  using LayOutMemory = std::function<std::size_t(
      const std::vector<std::size_t>&, const std::vector<std::size_t>&, std::vector<std::size_t>&)>;
  std::shared_ptr<const Layout> lay_out(SymbolValues capacity, const LayOutMemory& memory) const;
  std::shared_ptr<const Layout> layout_for(SymbolValues sizes, bool with_reserve) const;
  std::unique_ptr<Frame> idle_frame();
  void collect_spare_frame() const;  // frames_mutex_ is held
  void fit(Frame& frame, std::span<const Array> args);
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
  mutable DeviceConstants device_constants_;
  std::vector<int> constant_slots_;
  std::shared_ptr<const VaryingSizes> varying_;
  std::vector<PlannedSlot> planned_;
  std::vector<ArenaValue> values_;
  std::vector<bool> overlaps_;            // value * number of values + value; only where sizes vary
  std::vector<int> slot_memory_;          // empty: all in the host's
  std::vector<std::string> arena_names_;  // by memory space
  std::vector<int> readers_;
  std::vector<const KernelServices*> services_;  // by device
  std::vector<HostRead> host_reads_;
  std::vector<int> host_read_of_;  // by step that would copy it, or -1; empty where there are none

  std::shared_ptr<const Layout> layout_;  // where no size varies
  mutable std::mutex layouts_mutex_;
  mutable std::shared_ptr<const Layout> largest_layout_;  // guarded by layouts_mutex_

  // Frames that no call uses. One is taken and released without the lock.
  mutable std::atomic<Frame*> spare_frame_{nullptr};
  mutable std::mutex frames_mutex_;
  mutable std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<ReclaimableRegistration> kept_;  // last: gone before what is given up
};

struct Plan::Frame {
  explicit Frame(const Plan& plan);
  /// Where sizes vary: for a call with these.
  void resize(const Plan& plan, SymbolValues sizes);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  std::vector<Array> values;                 // by slot
  std::vector<KernelContext> contexts;       // by step
  std::vector<const Array*> input_pointers;  // what the contexts point into
  std::vector<Array*> output_pointers;
  std::shared_ptr<const Layout> layout;  // null: no value has a place
  std::vector<Ref<Buffer>> arenas;       // by memory space; null where it is empty
  std::vector<std::int64_t> sizes;       // by symbol
  std::vector<Array> host_reads;         // arguments that devices read in the host's memory

  /// Where `step` would copy one: writes the argument to memory that the device's kernels read, and
  /// makes `seen` what they see of it. False if it has to be copied.
  bool write_host_read(const Plan& plan, int step, const Array& value, Array& seen);

 private:
  void allocate_arenas(const Plan& plan);
  void place_values(const Plan& plan);
};

/// `function` as it is for arguments of these shapes, which may be known in part.
MutableFunction with_shapes(const MutableFunction& function,
                            const std::vector<PartialShape>& arg_shapes);

}  // namespace tandem
