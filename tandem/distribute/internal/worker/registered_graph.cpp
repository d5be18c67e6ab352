#include "tandem/distribute/internal/worker/registered_graph.h"

#include <memory>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/distribute/internal/wire/graph_message.h"
#include "tandem/runtime/runtime.h"

namespace tandem::distribute {

FunctionRef read_registered_graph(std::string_view graph_def, Runtime& runtime) {
  const io::ImportedGraph imported = import_graph(graph_def, runtime);
  for (const auto& node : imported.graph->nodes()) {
    const std::string& device = node->requested_device();
    if (device.empty()) {
      throw InvalidArgumentError(
          cat("Node '", node->name(), "' is missing a device specification"));
    }
    if (runtime.index_of(device) < 0) {
      throw InvalidArgumentError(
          cat("Node '", node->name(), "' is placed on '", device, "', an unknown device."));
    }
  }
  Graph graph = imported.graph->clone();
  const std::vector<std::vector<Node*>> consumers = graph.consumers();
  std::vector<Node*> effects;
  for (const auto& node : graph.nodes()) {
    if (node->op().traits.stateful || consumers[static_cast<std::size_t>(node->id())].empty())
      effects.push_back(node.get());
  }
  return std::make_shared<const Function>("part", std::move(graph), std::vector<Node*>(),
                                          std::vector<Output>(), std::move(effects));
}

}  // namespace tandem::distribute
