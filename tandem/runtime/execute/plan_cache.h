#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/graph/function.h"
#include "tandem/runtime/execute/executable.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/execute/plan_budget.h"
#include "tandem/runtime/execute/varying_sizes.h"

namespace tandem {

class NodeStates;
class Runtime;

/// Where a call finds its arguments, and the device of what asks for none.
struct CallPlaces {
  ArgPlaces args;
  int default_device = -1;
  std::vector<bool> lost;       ///< by device; empty if none is
  bool unmaterialized = false;  ///< an argument on the host was not computed
  bool operator==(const CallPlaces&) const = default;
};

/// A plan as the budget sees it.
struct PlanUse {
  std::shared_ptr<Executable> plan;
  std::uint64_t last_use = 0;  ///< PlanBudget::now
  bool latest = false;         ///< the one that its function used last
  std::size_t idle_bytes = 0;  ///< of values, while no call uses them
  std::size_t plan_bytes = 0;
  std::size_t bytes() const { return idle_bytes + plan_bytes; }
};

/// The plans of one function in one runtime, the latest one it ran in. Thread-safe: no lock is held
/// while a plan is made, so that it holds up those calls alone that need it.
///
/// A plan serves the calls with arguments of certain shapes. Once a function was called with a few
/// sets of shapes that differ in sizes, the sizes that differ are left open, and a shared plan
/// serves them all, as long as it computes what plans for each would, to the bit (VaryingSizes).
class PlanCache : public std::enable_shared_from_this<PlanCache> {
 public:
  /// `places`: null where there is one device. `session`: what the stateful nodes of a session
  /// keep; null: they keep it for the function alone.
  [[gnu::always_inline]] std::shared_ptr<Executable> get(Runtime& runtime, const Function& function,
                                                         std::span<const Array> args,
                                                         const CallPlaces* places,
                                                         NodeStates* session) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock() && !plans_.empty() && current(runtime, session) &&
        plans_.front().is_for(args, places)) {
      plans_.front().last_use = budget_->now();
      return plans_.front().plan;
    }
    return get_slowly(lock, runtime, function, args, places, session);
  }

  /// By what the function has been placed in the runtime, if it has.
  std::optional<PlacementChoice> choice(const Runtime& runtime);
  /// The next call places the function again, by what the runtime then says.
  void forget_places();

  PlanStats stats(const Runtime& runtime);
  std::vector<PlanUse> uses();
  bool evict(const Executable& plan);

 private:
  struct Entry {
    std::vector<Shape> shapes;                    // of a plan for these alone
    std::shared_ptr<const VaryingSizes> varying;  // of a shared plan; null: one for `shapes`
    bool any_shapes = false;                      // of graphs with TensorFlow 1 control flow
    std::unique_ptr<const CallPlaces> places;
    std::shared_ptr<Executable> plan;
    std::uint64_t last_use = 0;
    // For a shared plan: the sizes of the latest calls, and how many in a row had them.
    std::vector<std::int64_t> sizes = {};
    int same_sizes = 0;

    // A plan for these shapes alone.
    bool is_for(std::span<const Array> args, const CallPlaces* at) const {
      if (varying || any_shapes || (at == nullptr) != (places == nullptr)) return false;
      for (std::size_t i = 0; i < args.size(); ++i) {
        if (!(shapes[i] == args[i].shape())) return false;
      }
      return at == nullptr || *places == *at;
    }
    bool serves(std::span<const Array> args, const CallPlaces* at) const;
  };
  // The function's graph, optimised for all shapes, and what goes with it: one version for each set
  // of optimizer options.
  struct Body;
  // A plan that some thread is making.
  struct Making;

  bool current(const Runtime& runtime, const NodeStates* session) const;
  void adopt(Runtime& runtime, NodeStates* session);
  std::shared_ptr<Executable> get_slowly(std::unique_lock<std::mutex>& lock, Runtime& runtime,
                                         const Function& function, std::span<const Array> args,
                                         const CallPlaces* places, NodeStates* session);
  std::shared_ptr<Executable> find(std::span<const Array> args, const CallPlaces* places);
  std::shared_ptr<Executable> use(std::size_t entry);
  bool has_settled(Entry& entry, std::span<const Array> args);
  std::shared_ptr<Making> being_made(std::span<const Array> args, const CallPlaces* places) const;
  std::shared_ptr<VaryingSizes> sizes_to_share(const Function& function,
                                               std::span<const Array> args) const;
  std::shared_ptr<Executable> make(std::unique_lock<std::mutex>& lock, Runtime& runtime,
                                   const Function& function, std::span<const Array> args,
                                   const CallPlaces* places, NodeStates* session);
  void forget();

  std::atomic<std::uint32_t> plans_added_{0};  // written with mutex_ held
  std::mutex mutex_;                           // guards all of the below
  std::uint64_t runtime_id_ = 0;
  std::uint64_t options_version_ = 0;
  std::uint64_t generation_ = 0;  // of what is planned: a plan begun in an earlier one is not kept
  PlanBudget* budget_ = nullptr;  // of the runtime
  std::optional<PlacementChoice> choice_;  // none: nothing has been placed
  std::shared_ptr<Body> body_;
  std::shared_ptr<NodeStates> states_;
  std::shared_ptr<NodeStates> session_;  // has those of stateful nodes; may be null
  std::vector<Entry> plans_;             // the latest used first
  std::vector<std::shared_ptr<Making>> making_;
  std::condition_variable made_;
  std::vector<std::vector<Shape>> planned_shapes_;  // the latest that plans were made for
  bool unshareable_ = false;                        // a shared plan would not do the same
  PlanStats stats_;                                 // in this runtime
};

}  // namespace tandem
