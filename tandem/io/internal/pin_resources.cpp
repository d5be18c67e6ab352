#include "tandem/io/internal/pin_resources.h"

#include <string>
#include <utility>
#include <vector>

#include "tandem/io/internal/stand_in.h"
#include "tandem/placement/cost_profile.h"
#include "tandem/placement/placement.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::io {
namespace {

bool makes_resource(const Node& node) {
  return node.inputs().empty() && node.num_outputs() == 1 &&
         (node.output_dtype(0) == DType::kResource || is_ref(node.output_dtype(0)));
}

// A copy without the nodes that cannot run and what comes of them; `mapped` by old id.
Graph runnable_part(const Graph& graph, std::vector<Node*>& mapped) {
  Graph part = graph.clone(&mapped);
  std::vector<bool> drop(static_cast<std::size_t>(part.id_limit()), false);
  const auto dropped = [&](const Node* node) { return drop[static_cast<std::size_t>(node->id())]; };
  bool changed = true;
  while (changed) {  // more than once where loops go back
    changed = false;
    for (const auto& node : part.nodes()) {
      if (dropped(node.get())) continue;
      bool out = why_unsupported(*node) != nullptr;
      for (const Output& in : node->inputs()) out |= !in.node || dropped(in.node);
      for (const Node* before : node->control_inputs()) out |= dropped(before);
      if (!out) continue;
      drop[static_cast<std::size_t>(node->id())] = changed = true;
    }
  }
  for (Node*& node : mapped) {
    if (node && dropped(node)) node = nullptr;
  }
  part.remove_if(drop);
  return part;
}

}  // namespace

std::shared_ptr<const Graph> with_pinned_resources(std::shared_ptr<const Graph> graph,
                                                   Runtime& runtime) {
  if (runtime.devices().size() < 2) return graph;
  std::vector<Node*> mapped;
  const Graph part = runnable_part(*graph, mapped);
  PlacementOptions options;
  options.policy = runtime.placement_policy();
  options.soft = runtime.soft_placement();
  if (const auto& scopes = thread_context().devices; !scopes.empty())
    options.default_device = scopes.back();
  std::shared_ptr<const CostProfile> profile;
  if (const std::string path = runtime.placement_profile(); !path.empty())
    profile = std::make_shared<const CostProfile>(CostProfile::load(path));
  const DeviceSet devices = DeviceSet::of(runtime.devices());
  const CostModel costs(devices, std::move(profile));
  const Placement placement = place(part, costs, runtime.kernels(), options);
  std::vector<Node*> pinned;
  auto result = std::make_shared<Graph>(graph->clone(&pinned));
  for (const auto& node : graph->nodes()) {
    const auto id = static_cast<std::size_t>(node->id());
    if (!mapped[id] || !makes_resource(*node)) continue;
    const auto device = static_cast<std::size_t>(placement.device(*mapped[id]));
    result->set_requested_device(pinned[id], devices.devices[device].name());
  }
  return result;
}

}  // namespace tandem::io
