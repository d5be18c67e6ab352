#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tandem/graph/optimizer_options.h"
#include "tandem/graph/passes.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/placement/placement.h"

namespace tandem {

class Runtime;

/// A function whose nodes have devices, cut where values go from one memory to another.
///
/// A copy is a node `_CopyToDevice` on the receiving device or `_CopyToHost` on the giving one,
/// once for each value and destination. A constant that is wanted in several memories is there once
/// in each.
struct PlacedFunction {
  MutableFunction function;
  Placement placement;  ///< of the above, copies included
};

inline bool is_copy(const Node& node) {
  return node.kind() == NodeKind::kCopyToHost || node.kind() == NodeKind::kCopyToDevice;
}

/// Where the arguments of a call are: for each the index of the device in whose memory it lies, of
/// a resource the one that it belongs to.
using ArgPlaces = std::vector<int>;

/// By what a function is placed. It is kept with the function, which is not moved when the runtime
/// names another one.
struct PlacementChoice {
  static PlacementChoice of(const Runtime& runtime);
  PlacementPolicy policy = PlacementPolicy::kGreedy;
  std::shared_ptr<const CostProfile> profile;  ///< null: none
};

/// The runtime's devices, for planning.
DeviceSet device_set_of(const Runtime& runtime);

/// Places the nodes of a function on the runtime's devices. `default_device` (an index, or -1)
/// takes what asks for nothing.
Placement place_nodes(Runtime& runtime, const MutableFunction& function, const ArgPlaces& args,
                      int default_device, const PlacementChoice& choice);
/// As `place_function`, for a function whose shapes are those of a call; then makes fused ops where
/// the device that a node has been given has kernels for them, and cuts it. `function` has been
/// simplified, not fused (`OptimizerOptions::without_fusion`).
PlacedFunction place_function(Runtime& runtime, MutableFunction function, const ArgPlaces& args,
                              int default_device, const PlacementChoice& choice,
                              const OptimizerOptions& options);

/// Throws, or logs the fallback, if nodes ask for devices that are not there: before optimization
/// folds or merges them. Costs next to nothing for a function that asks for none.
void check_requests(Runtime& runtime, const MutableFunction& function);

/// True if every node is on the runtime's first CPU.
bool on_one_cpu(const PlacedFunction& placed);

}  // namespace tandem
