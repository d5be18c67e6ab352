#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/device/inter_op_pool.h"
#include "tandem/device/intra_op_pool.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/resource_manager.h"
#include "tandem/runtime/device_config.h"

namespace tandem {

class DeviceInventory;  // tandem/runtime/device_inventory.h
class PendingCalls;     // tandem/runtime/internal/pending_call.h
class RunningCalls;     // tandem/runtime/internal/running_calls.h

/// Owner of everything that lives while tensors are computed: devices, thread pools, registries in
/// use, resources.
///
/// Most programs never name it: free functions use the thread's current runtime (`RuntimeScope`),
/// else a default one made at first use from `td::config`. Tests make as many as they like.
/// Thread-safe. A runtime may be destroyed while other threads compute in it: eager calls that
/// devices have yet to run end first (unless a copy makes no progress for seconds), function calls
/// in progress are cancelled and waited for, and what is called in it afterwards, by iterators and
/// scopes that outlive it, throws CancelledError. Tensors outlive their runtime.
///
/// The default runtime is never destroyed: a program may end at any moment, whatever its threads
/// do. `td::shutdown()` ends it in an orderly way, which no program needs.
class TANDEM_EXPORT Runtime {
 public:
  struct Options {
    int inter_op_threads = 0;  ///< ops of a graph side by side; 0: one for each processor
    int intra_op_threads = 0;  ///< threads inside one op; 0: one for each processor
    DeviceConfig devices = {};
    /// The task of a cluster whose devices these are, "/job:worker/task:1"; empty: the only one.
    std::string task = {};
  };
  Runtime();
  explicit Runtime(const Options& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The thread's current runtime, or the default one.
  static Runtime& current();
  /// The runtime, for those that use it after this object may be gone: they then get CancelledError
  /// from what they call instead of memory that was freed.
  std::shared_ptr<Runtime> share() const;
  /// True once the runtime was destroyed, or shut down.
  bool closed() const { return flags_->closed.load(std::memory_order_acquire); }
  /// Throws CancelledError in a runtime that was destroyed, FailedPreconditionError in the default
  /// one once it was shut down.
  void check_open() const {
    if (closed()) throw_closed();
  }
  /// True once the default runtime exists, so that its configuration is fixed.
  static bool default_exists();

  /// Job, replica and task: what the names of its devices begin with.
  const DeviceSpec& task() const;
  const OpRegistry& ops() const;
  const KernelRegistry& kernels() const;
  /// The logical devices: CPUs, of which there is at least one, then accelerators by physical
  /// device, or as the environment lists these.
  const std::vector<std::shared_ptr<Device>>& devices() const;
  /// The place in devices(); -1 for a device of another runtime, a name that no device has.
  int index_of(const Device& device) const;
  int index_of(std::string_view full_name) const;
  /// True if calls have to ask where they run, or whether they may: there is more than one device,
  /// placement is not soft, decisions are logged, or the runtime is closed.
  bool needs_placement() const { return flags_->places_calls.load(std::memory_order_relaxed); }
  /// Where ops run unless asked otherwise.
  Device& default_device() const;
  const KernelServices& services(const Device& device) const;
  IntraOpPool& intra_op_pool() const;
  InterOpPool& inter_op_pool() const;
  ResourceManager& resources(const Device& device) const;
  /// State of eager calls of a `keeps_state` op, by op and attributes. The latest few thousand that
  /// were used are kept.
  std::shared_ptr<NodeState> eager_state(const OpDef& op, const AttrMap& attrs) const;
  /// Eager calls that devices have yet to run.
  const std::shared_ptr<PendingCalls>& pending_calls() const;
  void set_deterministic(bool on);
  bool deterministic() const;
  /// Function calls in progress: the destructor cancels them and waits for their end.
  RunningCalls& running_calls() const;
  /// Distinguishes runtimes in caches; never used twice in a process.
  std::uint64_t id() const;

  // Devices as configured (td::config, docs/devices.md).
  /// What was in force when the devices were made, completed by the environment.
  const DeviceConfig& device_config() const;
  const DeviceInventory& inventory() const;
  /// The physical device that a logical one is made of.
  const PhysicalDevice& physical_device(const Device& device) const;
  const std::vector<std::shared_ptr<Backend>>& backends() const;
  /// Ops go elsewhere where the device asked for can't be had. May change at any time, like the
  /// following; graphs placed before stay where they are.
  bool soft_placement() const { return flags_->soft_placement.load(std::memory_order_relaxed); }
  void set_soft_placement(bool on);
  /// Decisions are reported on stderr.
  bool log_placement() const { return flags_->log_placement.load(std::memory_order_relaxed); }
  void set_log_placement(bool on);
  /// Eager calls wait for the device that runs them.
  bool synchronous() const { return flags_->synchronous.load(std::memory_order_relaxed); }
  void set_synchronous(bool on) { flags_->synchronous.store(on, std::memory_order_relaxed); }
  PlacementPolicy placement_policy() const {
    return flags_->policy.load(std::memory_order_relaxed);
  }
  void set_placement_policy(PlacementPolicy p) {
    flags_->policy.store(p, std::memory_order_relaxed);
  }
  /// The file of measured costs; empty: none.
  std::string placement_profile() const;
  void set_placement_profile(const std::string& path);

  // Random state (td::random::set_seed): the seeds that the next random op without seeds of its own
  // gets.
  void set_seed(std::int64_t seed);
  struct SeedPair {
    std::int64_t seed = 0;
    std::int64_t seed2 = 0;
  };
  /// Like TensorFlow's get_seed: from the global seed, the op's own (if `has_op_seed`) and a
  /// counter of calls.
  SeedPair next_seeds(bool has_op_seed, std::int64_t op_seed);

 private:
  struct State;
  struct View;
  struct Alias {};
  /// What every call looks at, beside the rest of the state.
  struct Flags {
    std::atomic<bool> places_calls{false};
    std::atomic<bool> soft_placement{true};
    std::atomic<bool> log_placement{false};
    std::atomic<bool> synchronous{false};
    std::atomic<bool> closed{false};
    std::atomic<PlacementPolicy> policy{};
  };
  Runtime(Alias tag, State& state, View& view);
  friend class Session;
  friend TANDEM_EXPORT void shutdown();
  void close();
  void decide_whether_calls_are_placed();
  [[noreturn]] void throw_closed() const;

  /// Owned by the runtime and by those that share it; its alias, which calls see, owns nothing.
  std::shared_ptr<State> state_;
  View* view_ = nullptr;  ///< what ops find in it: the runtime's own resources, or a session's
  Flags* flags_ = nullptr;
  const bool owner_ = true;
};

/// Makes `runtime` the calling thread's current one for a block. Scopes of a thread may end in any
/// order: the one begun last that is still there counts. If the runtime is destroyed meanwhile,
/// calls in the block throw CancelledError. Throws FailedPreconditionError for a runtime that is
/// closed.
class TANDEM_EXPORT RuntimeScope {
 public:
  explicit RuntimeScope(Runtime& runtime);
  ~RuntimeScope();
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;
};

/// Ends the default runtime in an orderly way: eager calls that devices have yet to run end first,
/// function calls in progress on other threads are cancelled and waited for, and the threads of its
/// pools end. Does nothing if it never started, or the second time. Programs need not call it: they
/// may return from main or call std::exit at any moment.
///
/// Afterwards there is no default runtime: what needs one throws FailedPreconditionError. Tensors
/// keep their values, and runtimes of the program's own work on. Must not be called from within a
/// function call or a kernel (FailedPreconditionError).
TANDEM_EXPORT void shutdown();

}  // namespace tandem
