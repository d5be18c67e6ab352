// How good placements are, on the simulator's virtual clock: the cost policy against greedy,
// against one device, against placements by hand, against the optimum of small graphs and against
// bounds, on the device sets of bench/devices.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "bench/common/serve.h"
#include "bench/devices/emulated.h"
#include "bench/devices/judge.h"
#include "bench/devices/networks.h"
#include "bench/devices/sets.h"
#include "bench/devices/work_graph.h"

namespace {

using namespace bench;
using tandem::PlacementPolicy;

constexpr int kSeeds = 200;
constexpr int kSmallGraphs = 100;
constexpr double kRatios[] = {0.1, 1, 10};
constexpr double kWorthwhile = 0.8;  // a bound below this share of greedy: 20 % to gain at least

// What came out, over everything that was placed.
struct Findings {
  double vs_best = 0;
  double vs_greedy_sum = 0;
  int vs_greedy_count = 0;
  double vs_greedy_most = 0;
  double vs_bound_sum = 0;
  int placed = 0;
};

// `hand`: the makespan by hand, if there is one.
void judge(const Graph& graph, const CostModel& costs, const std::string& what, double hand,
           Findings& findings) {
  const double greedy = makespan(graph, placed(graph, costs, PlacementPolicy::kGreedy), costs);
  const double ours = makespan(graph, placed(graph, costs, PlacementPolicy::kCost), costs);
  double best = hand > 0 ? std::min(greedy, hand) : greedy;
  for (int d = 0; d < costs.devices().size(); ++d) {
    best = std::min(best, makespan(graph, all_on(graph, costs, d), costs));
  }
  const double bound = lower_bound(graph, costs);
  findings.vs_best = std::max(findings.vs_best, ours / best);
  findings.vs_greedy_most = std::max(findings.vs_greedy_most, ours / greedy);
  if (bound <= kWorthwhile * greedy) {
    findings.vs_greedy_sum += ours / greedy;
    ++findings.vs_greedy_count;
  }
  findings.vs_bound_sum += ours / bound;
  ++findings.placed;
  std::cerr << what << ": cost " << 1e3 * ours << " ms, greedy " << 1e3 * greedy
            << ", best of others " << 1e3 * best << ", by hand " << 1e3 * hand << ", bound "
            << 1e3 * bound << '\n';
}

// Everything is deterministic, so it is found out once.
const Findings& findings() {
  static const Findings all = [] {
    Findings found;
    for (const char* set : kDeviceSets) {
      const CostModel costs(device_set(set));
      for (Network (*make)() : {resnet50_training, two_branches, embedding, transformer}) {
        const Network network = make();
        const double hand = makespan(network.graph(), by_hand(network, costs), costs);
        judge(network.graph(), costs, std::string(set) + " " + network.name, hand, found);
      }
      for (int seed = 0; seed < kSeeds; ++seed) {
        Random random(static_cast<std::uint64_t>(seed) + 1000);
        const double ratio = kRatios[seed % 3];
        const Graph graph = layered_graph(costs.devices(), random.between(50, 500), ratio,
                                          static_cast<std::uint64_t>(seed));
        judge(graph, costs, std::string(set) + " seed " + std::to_string(seed), 0, found);
      }
    }
    return found;
  }();
  return all;
}

double vs_optimum() {
  static const double largest = [] {
    double most = 0;
    for (int seed = 0; seed < kSmallGraphs; ++seed) {
      const char* set = kDeviceSets[seed % 3];
      const CostModel costs(device_set(set));
      Random random(static_cast<std::uint64_t>(seed) + 5000);
      // Five devices have too many placements of ten nodes.
      const int nodes = random.between(5, costs.devices().size() > 3 ? 8 : 10);
      const Graph graph = layered_graph(costs.devices(), nodes, kRatios[seed / 3 % 3],
                                        static_cast<std::uint64_t>(seed));
      const double ours = makespan(graph, placed(graph, costs, PlacementPolicy::kCost), costs);
      most = std::max(most, ours / Exhaustive(graph, costs, 1).best());
    }
    return most;
  }();
  return largest;
}

Answer answer(double value) {
  Answer a;
  a.value = value;
  return a;
}

}  // namespace

int main() {
  return serve({{"makespan_vs_best", [] { return answer(findings().vs_best); }},
                {"makespan_vs_greedy",
                 [] { return answer(findings().vs_greedy_sum / findings().vs_greedy_count); }},
                {"makespan_vs_greedy_max", [] { return answer(findings().vs_greedy_most); }},
                {"makespan_vs_optimum", [] { return answer(vs_optimum()); }},
                {"info_makespan_vs_bound",
                 [] { return answer(findings().vs_bound_sum / findings().placed); }},
                {"busy_share", [] { return answer(busy_share()); }},
                {"copies_hidden", [] { return answer(copies_hidden()); }},
                {"forecast_error", [] { return answer(forecast_error()); }}},
               "tandem");
}
