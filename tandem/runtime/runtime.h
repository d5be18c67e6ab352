#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/device/inter_op_pool.h"
#include "tandem/device/intra_op_pool.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/graph/resource_manager.h"

namespace tandem {

/// Owner of everything that lives while tensors are computed: devices, thread pools, registries in
/// use, resources.
///
/// Most programs never name it: free functions use the thread's current runtime (`RuntimeScope`),
/// else a default one made at first use from `td::config`. Tests make as many as they like.
/// Thread-safe. Host tensors outlive their runtime.
class TANDEM_EXPORT Runtime {
 public:
  struct Options {
    int inter_op_threads = 0;  ///< ops of a graph side by side; 0: one for each processor
    int intra_op_threads = 0;  ///< threads inside one op; 0: one for each processor
  };
  Runtime();
  explicit Runtime(const Options& options);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// The thread's current runtime, or the default one.
  static Runtime& current();
  /// True once the default runtime exists, so that its configuration is fixed.
  static bool default_exists();

  const OpRegistry& ops() const;
  const KernelRegistry& kernels() const;
  const std::vector<std::shared_ptr<Device>>& devices() const;
  /// Where ops run unless asked otherwise.
  Device& default_device() const;
  const KernelServices& services(const Device& device) const;
  IntraOpPool& intra_op_pool() const;
  InterOpPool& inter_op_pool() const;
  ResourceManager& resources(const Device& device) const;
  /// State of eager calls of a `keeps_state` op, by op and attributes. The latest few thousand that
  /// were used are kept.
  std::shared_ptr<NodeState> eager_state(const OpDef& op, const AttrMap& attrs) const;
  void set_deterministic(bool on);
  bool deterministic() const;
  /// Distinguishes runtimes in caches; never used twice in a process.
  std::uint64_t id() const;

  // Random state (td::random::set_seed): the seeds that the next random op without seeds of its own
  // gets.
  void set_seed(std::int64_t seed);
  struct SeedPair {
    std::int64_t seed = 0;
    std::int64_t seed2 = 0;
  };
  /// As TensorFlow's get_seed: from the global seed, the op's own (if `has_op_seed`) and a counter
  /// of calls.
  SeedPair next_seeds(bool has_op_seed, std::int64_t op_seed);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Makes `runtime` the calling thread's current one for a block.
class TANDEM_EXPORT RuntimeScope {
 public:
  explicit RuntimeScope(Runtime& runtime);
  ~RuntimeScope();
  RuntimeScope(const RuntimeScope&) = delete;
  RuntimeScope& operator=(const RuntimeScope&) = delete;

 private:
  Runtime* saved_;
};

}  // namespace tandem
