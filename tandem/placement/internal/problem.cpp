#include "tandem/placement/internal/problem.h"

#include <algorithm>

#include "tandem/placement/internal/tasks_of_node.h"

namespace tandem::placement {
namespace {

// The order of the graph where that is one already, which is cheaper to find out than to make one.
std::vector<const Node*> order_of(const Graph& graph, std::vector<int>& index) {
  std::vector<const Node*> order;
  order.reserve(graph.num_nodes());
  const auto known = [&](const Node* node) {
    return index[static_cast<std::size_t>(node->id())] >= 0;
  };
  for (const auto& node : graph.nodes()) {
    bool good = true;
    for (const Output& in : node->inputs()) {
      good = good && in.node && (known(in.node) || is_back_edge(*in.node, *node));
    }
    for (const Node* before : node->control_inputs()) good = good && known(before);
    if (!good) break;
    index[static_cast<std::size_t>(node->id())] = static_cast<int>(order.size());
    order.push_back(node.get());
  }
  if (order.size() == graph.num_nodes()) return order;
  const auto sorted = graph.topological_order();
  order.assign(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    index[static_cast<std::size_t>(order[i]->id())] = static_cast<int>(i);
  }
  return order;
}

}  // namespace

Problem::Problem(const Graph& graph, const CostModel& model, const Constraints& bounds)
    : costs(model), constraints(bounds), classes(model.num_classes()) {
  const DeviceSet& devices = costs.devices();
  for (int d = 0; d < devices.size(); ++d) {
    memory_of.push_back(devices.memory_of(d));
    host_of.push_back(devices.host_of(d));
  }
  number(graph);
  add_values();
  add_uses();
  if (limited) add_sharing();
  add_groups();
}

void Problem::number(const Graph& graph) {
  index_.assign(static_cast<std::size_t>(graph.id_limit()), -1);
  nodes = order_of(graph, index_);
  const std::size_t n = nodes.size();
  group.reserve(n);
  is_task.reserve(n);
  is_result.reserve(n);
  seconds_by_class.reserve(n * static_cast<std::size_t>(classes));
  std::vector<double> seconds;
  for (const Node* node : nodes) {
    group.push_back(constraints.group[static_cast<std::size_t>(node->id())]);
    is_task.push_back(placement::is_task(*node));
    is_result.push_back(node->kind() == NodeKind::kRetval);
    costs.seconds_by_class(*node, seconds);
    seconds_by_class.insert(seconds_by_class.end(), seconds.begin(), seconds.end());
  }
}

void Problem::add_values() {
  value_begin.reserve(nodes.size() + 1);
  double sum = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    value_begin.push_back(static_cast<int>(value_node.size()));
    for (int o = 0; o < node.num_outputs(); ++o) {
      value_node.push_back(static_cast<int>(i));
      value_bytes.push_back(CostModel::output_bytes(node, o));
      value_on_host.push_back(output_on_host(node, o));
      value_everywhere.push_back(is_everywhere(node));
      sum += value_bytes.back();
    }
    variable_bytes.push_back(placement::variable_bytes(node));
    sum += variable_bytes.back();
  }
  value_begin.push_back(static_cast<int>(value_node.size()));
  for (const DeviceModel& device : costs.devices().devices) {
    limited =
        limited || (device.memory_bytes > 0 && sum > static_cast<double>(device.memory_bytes));
  }
}

void Problem::add_sharing() {
  shares.assign(value_node.size(), -1);
  only_reuses.assign(value_node.size(), 0);
  for (std::size_t v = 0; v < value_node.size(); ++v) {
    const int producer = value_node[v];
    const Node& node = *nodes[static_cast<std::size_t>(producer)];
    const int output = static_cast<int>(v) - first_value(producer);
    const auto value_of = [&](int input) {
      const Output& in = node.inputs()[static_cast<std::size_t>(input)];
      return first_value(index_[static_cast<std::size_t>(in.node->id())]) + in.index;
    };
    const auto is_last_reader = [&](int input) {
      const std::span<const int> all = readers(value_of(input));
      return !all.empty() && all.back() == producer &&
             std::none_of(all.begin(), all.end(),
                          [&](int r) { return is_result[static_cast<std::size_t>(r)] != 0; });
    };
    int input = placement::shared_input(node, output);
    const bool reuses = input < 0;
    if (reuses) input = placement::reusable_input(node, output, is_last_reader);
    if (input < 0) continue;
    if (is_back_edge(*node.inputs()[static_cast<std::size_t>(input)].node, node)) continue;
    shares[v] = value_of(input);
    only_reuses[v] = reuses;
  }
}

void Problem::add_uses() {
  reader_begin.assign(value_node.size() + 1, 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    use_begin.push_back(static_cast<int>(use.size()));
    control_begin.push_back(static_cast<int>(control.size()));
    for (std::size_t k = 0; k < node.inputs().size(); ++k) {
      const Output& in = node.inputs()[k];
      if (!in.node || is_back_edge(*in.node, node)) continue;
      const int producer = index_[static_cast<std::size_t>(in.node->id())];
      use.push_back({first_value(producer) + in.index, input_on_host(node, static_cast<int>(k))});
    }
    for (const Node* before : node.control_inputs()) {
      control.push_back(index_[static_cast<std::size_t>(before->id())]);
    }
  }
  use_begin.push_back(static_cast<int>(use.size()));
  control_begin.push_back(static_cast<int>(control.size()));

  std::vector<int> last(value_node.size(), -1);
  const auto each_reader = [&](auto take) {
    std::fill(last.begin(), last.end(), -1);
    for (int node = 0; node < size(); ++node) {
      for (const Use& u : uses(node)) {
        if (last[static_cast<std::size_t>(u.value)] == node) continue;
        last[static_cast<std::size_t>(u.value)] = node;
        take(u.value, node);
      }
    }
  };
  each_reader([&](int value, int) { ++reader_begin[static_cast<std::size_t>(value) + 1]; });
  for (std::size_t v = 0; v < value_node.size(); ++v) reader_begin[v + 1] += reader_begin[v];
  reader.resize(static_cast<std::size_t>(reader_begin.back()));
  std::vector<int> next(reader_begin.begin(), reader_begin.end() - 1);
  each_reader([&](int value, int node) {
    reader[static_cast<std::size_t>(next[static_cast<std::size_t>(value)]++)] = node;
  });
}

void Problem::add_groups() {
  for (const Constraints::Group& g : constraints.groups) allowed_of_group.push_back(g.allowed);
  member_begin.assign(constraints.groups.size() + 1, 0);
  for (const int g : group) ++member_begin[static_cast<std::size_t>(g) + 1];
  for (std::size_t g = 0; g < constraints.groups.size(); ++g)
    member_begin[g + 1] += member_begin[g];
  member.resize(nodes.size());
  std::vector<int> next(member_begin.begin(), member_begin.end() - 1);
  for (int node = 0; node < size(); ++node) {
    member[static_cast<std::size_t>(
        next[static_cast<std::size_t>(group[static_cast<std::size_t>(node)])]++)] = node;
  }
}

}  // namespace tandem::placement
