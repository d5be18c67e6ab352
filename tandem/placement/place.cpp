#include <cstdio>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/placement/constraints.h"
#include "tandem/placement/internal/greedy.h"
#include "tandem/placement/placement.h"

namespace tandem {
namespace {

// TensorFlow's lines: "mul: (Mul): /job:localhost/replica:0/task:0/device:CPU:0".
void log(const Placement& placement, const std::vector<const Node*>& order) {
  std::string lines;
  for (const Node* node : order) {
    const DeviceModel& device =
        placement.devices.devices[static_cast<std::size_t>(placement.device(*node))];
    lines += cat(node->name(), ": (", node->op().name, "): ", device.name(), "\n");
  }
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

}  // namespace

std::string soft_placement_line(const Graph& graph, const Placement& placement) {
  const Node* first = nullptr;
  int others = 0;
  for (const Node* node : graph.topological_order()) {
    if (placement.of(*node).by != PlacedBy::kSoft) continue;
    if (first) {
      ++others;
    } else {
      first = node;
    }
  }
  if (!first) return {};
  std::string line =
      cat("Soft placement: '", first->name(), "' (", first->op().name, ") ",
          placement.of(*first).reason, "; it runs on ",
          placement.devices.devices[static_cast<std::size_t>(placement.device(*first))].name());
  if (others > 0) line += cat(" (and ", others, " more)");
  return line + '.';
}

Placement place(const Graph& graph, const CostModel& costs, const KernelRegistry& kernels,
                const PlacementOptions& options) {
  const DeviceSet& devices = costs.devices();
  if (devices.devices.empty()) throw InvalidArgumentError("No devices are registered");
  placement::SpecTable specs;
  placement::KernelSupport support(devices, kernels);
  const placement::Colocation colocation(graph, devices, options, specs, support);
  placement::Candidates candidates(devices, options, specs, support, colocation, graph);
  const placement::Greedy greedy = placement::place_greedily(graph, colocation, candidates);

  Placement result;
  result.devices = devices;
  result.nodes.resize(static_cast<std::size_t>(graph.id_limit()));
  const placement::Reasons reasons(devices, specs, colocation, support, greedy);
  for (const auto& node : graph.nodes())
    result.nodes[static_cast<std::size_t>(node->id())] = reasons.of(*node);
  if (options.policy == PlacementPolicy::kCost)
    result = place_by_cost(graph, costs, greedy.constraints, std::move(result));
  if (options.log) log(result, greedy.order);
  return result;
}

}  // namespace tandem
