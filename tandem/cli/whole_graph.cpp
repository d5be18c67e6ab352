#include "tandem/cli/whole_graph.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/graph_session.h"

namespace tandem::cli {

WholeFunction whole_function(io::ImportedGraph imported, const WholeGraph& step) {
  const bool everything = step.fetches.empty() && step.targets.empty();
  if (everything && !imported.unsupported.empty()) {
    throw UnimplementedError(cat("The graph cannot be optimized, since some nodes cannot run:",
                                 io::describe_unsupported(imported.unsupported)));
  }
  std::vector<std::string> feeds, fetches = step.fetches, targets = step.targets;
  WholeFunction whole;
  std::map<std::string, PartialShape> given = step.shapes;
  const auto users = imported.graph->consumers();
  for (const auto& node : imported.graph->nodes()) {
    const bool used = !users[static_cast<std::size_t>(node->id())].empty();
    if (node->op().name.starts_with("Placeholder")) {
      const auto shape = given.find(node->name());
      if (!used && imported.graph->num_nodes() > 1 && shape == given.end()) continue;
      feeds.push_back(node->name());
      whole.arg_shapes.push_back(shape == given.end() ? node->output_shape(0) : shape->second);
      if (shape != given.end()) given.erase(shape);
    } else if (everything && !used && node->kind() != NodeKind::kConst) {
      for (int i = 0; i < node->num_outputs(); ++i) fetches.push_back(cat(node->name(), ":", i));
      if (node->num_outputs() == 0) targets.push_back(node->name());
    }
  }
  for (const auto& [name, shape] : given) {
    feeds.push_back(name);
    whole.arg_shapes.push_back(shape);
  }
  const io::GraphSession session(std::move(imported));
  whole.function = session.prepare(feeds, fetches, targets).function();
  return whole;
}

}  // namespace tandem::cli
