// How long placing a large graph takes: the slower of the two policies.
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "bench/common/serve.h"
#include "bench/common/timing.h"
#include "bench/devices/judge.h"
#include "bench/devices/sets.h"
#include "bench/devices/work_graph.h"

namespace {

using namespace bench;
using tandem::PlacementPolicy;

constexpr double kRatio = 0.1;  // so that 100,000 values fit into the devices' memory
constexpr int kTimes = 3;

double milliseconds(const Graph& graph, const CostModel& costs, PlacementPolicy policy) {
  std::vector<double> times;
  for (int i = 0; i < kTimes; ++i) {
    const double start = now();
    const Placement placement = placed(graph, costs, policy);
    times.push_back(1e3 * (now() - start));
  }
  std::sort(times.begin(), times.end());
  return times[kTimes / 2];
}

std::function<Answer()> place(int nodes) {
  return [nodes] {
    static std::shared_ptr<const CostModel> costs =
        std::make_shared<CostModel>(device_set("four_gpus_slow_link"));
    const Graph graph = layered_graph(costs->devices(), nodes, kRatio, 0);
    Answer answer;
    answer.nodes = static_cast<double>(graph.num_nodes());
    answer.value = std::max(milliseconds(graph, *costs, PlacementPolicy::kGreedy),
                            milliseconds(graph, *costs, PlacementPolicy::kCost));
    return answer;
  };
}

}  // namespace

int main() {
  return serve({{"nodes_10k", place(10'000)}, {"nodes_100k", place(100'000)}}, "tandem");
}
