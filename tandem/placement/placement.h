#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/graph/graph.h"
#include "tandem/graph/kernel.h"
#include "tandem/placement/cost_model.h"
#include "tandem/placement/device_set.h"

namespace tandem {

/// Why a node is where it is.
enum class PlacedBy : std::uint8_t {
  kRequest,     ///< a device scope asked for it
  kColocation,  ///< goes where another node or a resource is
  kOnlyKernel,  ///< no other device has a kernel
  kSoft,        ///< what was asked for is not possible: fallback
  kGreedy,      ///< the first device, in TensorFlow's order, that has a kernel
  kHostMemory,  ///< works on host memory only (small integers, shapes)
  kNear,        ///< beside the op that makes or takes its value
  kCost,        ///< cheapest by the cost model
};

struct NodePlacement {
  int device = 0;  ///< index in the DeviceSet
  PlacedBy by = PlacedBy::kGreedy;
  std::string reason;                ///< one sentence for people
  std::vector<std::string> refused;  ///< "GPU:0: no kernel for string"
};

/// A value that must get from one memory space to another: once for each destination.
struct PlannedCopy {
  Output value;
  int from = 0;  ///< memory space
  int to = 0;
  double bytes = 0;    ///< 0 if unknown
  double seconds = 0;  ///< expected
};

/// A graph's nodes assigned to devices. Indexed by node id.
struct TANDEM_EXPORT Placement {
  DeviceSet devices;
  std::vector<NodePlacement> nodes;
  const NodePlacement& of(const Node& node) const {
    return nodes[static_cast<std::size_t>(node.id())];
  }
  int device(const Node& node) const { return of(node).device; }
  /// The memory space where output `i` lies, or where input `i` must lie. Spaces are numbered like
  /// devices; the memory of a task's first CPU is its host's, which all CPUs of the task share.
  int output_memory(const Node& node, int i) const;
  int input_memory(const Node& node, int i) const;
  /// All copies that the placement makes necessary, in graph order; each value once a destination.
  /// Constants are made where they are wanted, not copied.
  std::vector<PlannedCopy> copies(const Graph& graph, const CostModel& costs) const;
};

/// True if what runs such a node is a kernel of the device's class. Copies, calls and control flow
/// are carried out by the runtime, so every device takes them.
constexpr bool needs_device_kernel(NodeKind kind) {
  return kind == NodeKind::kPlain || kind == NodeKind::kVariable;
}

/// True if the argument lies in host memory wherever the op runs: strings and other objects, what
/// the op or kernel declares so, and all arguments of ops on int32 alone (TensorFlow's rule).
TANDEM_EXPORT bool input_on_host(const Node& node, int i);
TANDEM_EXPORT bool output_on_host(const Node& node, int i);
/// True if the host's kernel runs the node wherever it is placed: copies, calls and control flow,
/// which the runtime carries out, and what takes and gives values in host memory alone.
TANDEM_EXPORT bool is_host_work(const Node& node);
/// True if the op declares so (`OpTraits::host_inputs`) for input i of a call. `attrs` must have
/// every attribute of the op, defaults included (`complete_attrs`).
TANDEM_EXPORT bool declared_on_host(const OpDef& op, const AttrMap& attrs, int input);

enum class PlacementPolicy : std::uint8_t { kGreedy, kCost };

struct PlacementOptions {
  PlacementPolicy policy = PlacementPolicy::kGreedy;
  bool soft = true;  ///< fall back to a device that can where the one asked for can't
  bool log = false;  ///< "mul: (Mul): /job:…/device:CPU:0" on stderr for each node
  std::string default_device = {};  ///< of nodes that ask for nothing
  /// Arguments and resources whose place is known.
  std::vector<std::pair<const Node*, int>> fixed = {};
};

/// Assigns every node to one of the cost model's devices. The greedy policy does not look at memory
/// limits; `kernels` names what each device's kernel class can run. Throws InvalidArgumentError
/// with TensorFlow's texts: an unknown device, no kernel without soft placement (naming the devices
/// that exist and those with a kernel), requests and colocations that contradict each other (naming
/// both sides). Deterministic: depends on the arguments alone.
TANDEM_EXPORT Placement place(const Graph& graph, const CostModel& costs,
                              const KernelRegistry& kernels, const PlacementOptions& options = {});

/// One line for people, however many nodes are not where they were asked for: the first of them,
/// why, and how many there are. Empty if there are none.
TANDEM_EXPORT std::string soft_placement_line(const Graph& graph, const Placement& placement);

}  // namespace tandem
