#include "tandem/runtime/partition/place_on_tasks.h"

#include <memory>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/expand_functions.h"
#include "tandem/runtime/execute/prepare.h"
#include "tandem/runtime/partition/partitioned_function.h"
#include "tandem/runtime/runtime.h"

namespace tandem {

AssignedGraph place_on_tasks(const Function& function, std::span<Runtime* const> tasks,
                             PlacementOptions options) {
  if (tasks.empty()) throw InvalidArgumentError("There are no tasks to place the function on.");
  const Runtime& first = *tasks.front();
  AssignedGraph assigned{MutableFunction(function), devices_of(tasks), {}};
  // A call, branch or loop runs on one task; one that asks for several becomes nodes that can be
  // assigned one by one.
  passes::expand_functions(assigned.function, first.ops(), {.choose = passes::spans_tasks});
  prepare(assigned.function, first.ops());
  std::vector<std::shared_ptr<Device>> devices;
  for (const Runtime* task : tasks)
    devices.insert(devices.end(), task->devices().begin(), task->devices().end());
  for (const Node* arg : assigned.function.args) options.fixed.emplace_back(arg, 0);
  const Graph& graph = assigned.function.graph;
  const Placement placement =
      place(graph, CostModel(DeviceSet::of(devices)), first.kernels(), options);
  assigned.device_of.assign(static_cast<std::size_t>(graph.id_limit()), -1);
  for (const auto& node : graph.nodes())
    assigned.device_of[static_cast<std::size_t>(node->id())] = placement.device(*node);
  return assigned;
}

}  // namespace tandem
