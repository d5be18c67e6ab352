#include "tandem/placement/placement.h"

#include <algorithm>
#include <unordered_set>

#include "tandem/placement/internal/tasks_of_node.h"

namespace tandem {

int Placement::output_memory(const Node& node, int i) const {
  return output_on_host(node, i) ? devices.host_of(device(node)) : devices.memory_of(device(node));
}

int Placement::input_memory(const Node& node, int i) const {
  return input_on_host(node, i) ? devices.host_of(device(node)) : devices.memory_of(device(node));
}

namespace {

// A value and where it is needed.
struct Want {
  int node, output, memory;
  bool operator==(const Want&) const = default;
};

struct WantHash {
  std::size_t operator()(const Want& w) const {
    std::uint64_t h = static_cast<std::uint64_t>(w.node);
    for (const int part : {w.output, w.memory})
      h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(part);
    return static_cast<std::size_t>(h ^ h >> 32);
  }
};

}  // namespace

std::vector<PlannedCopy> Placement::copies(const Graph& graph, const CostModel& costs) const {
  std::vector<int> position(static_cast<std::size_t>(graph.id_limit()));
  int next = 0;
  for (const auto& node : graph.nodes()) position[static_cast<std::size_t>(node->id())] = next++;

  std::vector<PlannedCopy> copies;
  std::unordered_set<Want, WantHash> known;
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < static_cast<int>(node->inputs().size()); ++i) {
      const Output& value = node->inputs()[static_cast<std::size_t>(i)];
      if (!value.node || placement::is_everywhere(*value.node)) continue;
      // Most edges stay on one device; which arguments are on the host matters to few.
      const int from_device = devices.memory_of(device(*value.node));
      const int to_device = devices.memory_of(device(*node));
      const int from_host = devices.host_of(from_device), to_host = devices.host_of(to_device);
      if (from_device == from_host && to_device == from_host) continue;
      PlannedCopy copy;
      copy.value = value;
      copy.from = from_device == from_host ? from_host : output_memory(*value.node, value.index);
      copy.to = to_device == to_host ? to_host : input_memory(*node, i);
      if (copy.from == copy.to || !known.insert({value.node->id(), value.index, copy.to}).second)
        continue;
      const double bytes = CostModel::output_bytes(*value.node, value.index);
      copy.bytes = value.node->output_shape(value.index).is_fully_known() ? bytes : 0;
      copy.seconds = costs.devices().copy_seconds(copy.from, copy.to, bytes);
      copies.push_back(copy);
    }
  }
  std::stable_sort(copies.begin(), copies.end(), [&](const PlannedCopy& a, const PlannedCopy& b) {
    const int x = position[static_cast<std::size_t>(a.value.node->id())];
    const int y = position[static_cast<std::size_t>(b.value.node->id())];
    return x != y ? x < y : a.value.index < b.value.index;
  });
  return copies;
}

}  // namespace tandem
