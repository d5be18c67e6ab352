// What a placement is compared with: bounds, and the best of all for small graphs.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tandem/graph/kernel.h"
#include "tandem/placement/placement.h"
#include "tandem/placement/simulator.h"
#include "tandem/placement/task_graph.h"

namespace bench {

using tandem::CostModel;
using tandem::Graph;
using tandem::Node;
using tandem::Placement;

inline double makespan(const Graph& graph, const Placement& placement, const CostModel& costs) {
  return tandem::simulate(tandem::TaskGraph::of(graph, placement, costs)).makespan;
}

inline Placement placed(const Graph& graph, const CostModel& costs,
                        tandem::PlacementPolicy policy) {
  static const tandem::KernelRegistry kernels;
  tandem::PlacementOptions options;
  options.policy = policy;
  return tandem::place(graph, costs, kernels, options);
}

// All on one device, but for nodes that ask for another.
inline Placement all_on(const Graph& graph, const CostModel& costs, int device) {
  Placement placement;
  placement.devices = costs.devices();
  placement.nodes.resize(static_cast<std::size_t>(graph.id_limit()));
  for (const auto& node : graph.nodes()) {
    const std::string& asked = node->requested_device();
    placement.nodes[static_cast<std::size_t>(node->id())].device =
        asked.empty() ? device : costs.devices().find(asked);
  }
  return placement;
}

// No run is shorter than this, by three ways of thinking, of which the largest counts:
// - A node begins when its inputs are there: those made on its own device one after the other, the
//   others after a copy; whichever of them are local.
// - The work of all nodes, each taken where it is cheapest when devices are weighted by their
// speed.
// - What goes out of the only memory where it can be is not counted: transfers are in the first.
inline double lower_bound(const Graph& graph, const CostModel& costs) {
  const tandem::DeviceSet& devices = costs.devices();
  const auto n = static_cast<std::size_t>(graph.id_limit());
  std::vector<double> begin(n, 0.0), time(n, 0.0);
  std::vector<double> speed(devices.devices.size(), 0.0);
  double path = 0;
  for (const Node* node : graph.topological_order()) {
    const auto id = static_cast<std::size_t>(node->id());
    time[id] = std::numeric_limits<double>::infinity();
    for (int d = 0; d < devices.size(); ++d) {
      const double seconds = costs.seconds(*node, d);
      speed[static_cast<std::size_t>(d)] += seconds;
      time[id] = std::min(time[id], seconds);
    }
    const auto& inputs = node->inputs();
    const std::size_t many = std::min<std::size_t>(inputs.size(), 6);
    double earliest = std::numeric_limits<double>::infinity();
    for (unsigned local = 0; local < 1u << many; ++local) {
      double ready = 0, first = std::numeric_limits<double>::infinity(), sum = 0;
      for (std::size_t i = 0; i < many; ++i) {
        const auto in = static_cast<std::size_t>(inputs[i].node->id());
        if ((local >> i & 1) != 0) {
          first = std::min(first, begin[in]);
          sum += time[in];
          ready = std::max(ready, begin[in] + time[in]);
        } else {
          double copy = std::numeric_limits<double>::infinity();
          const double bytes = CostModel::output_bytes(*inputs[i].node, inputs[i].index);
          for (int d = 1; d < devices.size(); ++d) {
            copy = std::min(copy, devices.copy_seconds(0, devices.memory_of(d), bytes));
          }
          ready = std::max(ready, begin[in] + time[in] + copy);
        }
      }
      if (sum > 0) ready = std::max(ready, first + sum);
      earliest = std::min(earliest, ready);
    }
    begin[id] = many > 0 ? earliest : 0;
    path = std::max(path, begin[id] + time[id]);
  }
  double speeds = 0;
  for (double& s : speed) speeds += s = s > 0 ? 1 / s : 0;
  double work = 0;
  for (const auto& node : graph.nodes()) {
    double least = std::numeric_limits<double>::infinity();
    for (int d = 0; d < devices.size(); ++d) {
      const double share = speed[static_cast<std::size_t>(d)] / std::max(speeds, 1e-300);
      least = std::min(least, share * costs.seconds(*node, d));
    }
    work += least;
  }
  return std::max(path, work);
}

// The shortest makespan of all placements. Devices from `first_equal` on are taken to be equal, so
// that of placements that differ by their names alone one is tried.
class Exhaustive {
 public:
  Exhaustive(const Graph& graph, const CostModel& costs, int first_equal)
      : graph_(graph),
        costs_(costs),
        first_equal_(first_equal),
        placement_(all_on(graph, costs, 0)) {
    for (const auto& node : graph.nodes()) nodes_.push_back(node.get());
  }
  double best() {
    go(0, 0);
    return best_;
  }

 private:
  void go(std::size_t at, int used) {
    if (at == nodes_.size()) {
      best_ = std::min(best_, makespan(graph_, placement_, costs_));
      return;
    }
    const int equal = costs_.devices().size() - first_equal_;
    const int last = first_equal_ + std::min(equal, used + 1);
    for (int d = 0; d < last; ++d) {
      placement_.nodes[static_cast<std::size_t>(nodes_[at]->id())].device = d;
      go(at + 1, std::max(used, d - first_equal_ + 1));
    }
  }

  const Graph& graph_;
  const CostModel& costs_;
  int first_equal_;
  Placement placement_;
  std::vector<const Node*> nodes_;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace bench
