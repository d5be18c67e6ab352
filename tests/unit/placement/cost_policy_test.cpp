#include <algorithm>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/placement/placement.h"
#include "tandem/placement/simulator.h"

#include "tests/unit/placement/schedule_util.h"

namespace tandem::schedule_test {
namespace {

using ::testing::HasSubstr;

Placement placed(const Graph& graph, const CostModel& costs, PlacementPolicy policy,
                 PlacementOptions options = {}) {
  static const KernelRegistry kernels;
  options.policy = policy;
  return place(graph, costs, kernels, options);
}

double makespan(const Graph& graph, const Placement& placement, const CostModel& costs) {
  return simulate(TaskGraph::of(graph, placement, costs)).makespan;
}

void random_graph(WorkGraph& g, std::uint64_t seed, int nodes, int bytes) {
  Random random(seed);
  std::vector<Node*> all;
  for (int i = 0; i < nodes; ++i) {
    std::vector<Node*> inputs;
    for (int k = random.below(3); k > 0 && i > 0; --k) {
      inputs.push_back(all[static_cast<std::size_t>(std::max(0, i - 1 - random.below(6)))]);
    }
    all.push_back(g.work("n" + std::to_string(i), 4 + random.below(40), inputs,
                         4 * (1 + random.below(bytes))));
  }
}

TEST(CostPolicyTest, RunsBranchesSideBySide) {
  const CostModel costs(devices(2));
  WorkGraph g;
  std::vector<Node*> ends;
  for (const char* branch : {"a", "b"}) {
    Node* at = g.work(branch, 400, {}, 4);
    for (int i = 0; i < 5; ++i) at = g.work(branch, 400, {at}, 4);
    ends.push_back(at);
  }
  g.work("join", 4, ends, 4);
  const Placement greedy = placed(g.graph, costs, PlacementPolicy::kGreedy);
  const Placement best = placed(g.graph, costs, PlacementPolicy::kCost);
  EXPECT_DOUBLE_EQ(makespan(g.graph, greedy, costs), 1201);
  EXPECT_DOUBLE_EQ(makespan(g.graph, best, costs), 605);  // one copy and the join
  EXPECT_EQ(best.nodes[0].by, PlacedBy::kCost);
  EXPECT_THAT(best.nodes[0].reason, HasSubstr("100 s here, 400 s on CPU:0"));
}

TEST(CostPolicyTest, SmallWorkStaysNearItsData) {
  const CostModel costs(devices(1));
  WorkGraph g;
  Node* big = g.work("big", 1, {}, 4000, "/CPU:0");
  Node* small = g.work("small", 40, {big}, 4);  // 40 s here, 10 s after a copy of 4000 s
  const Placement best = placed(g.graph, costs, PlacementPolicy::kCost);
  EXPECT_EQ(best.device(*small), 0);
}

TEST(CostPolicyTest, RequestsAreKept) {
  const CostModel costs(devices(2));
  WorkGraph g;
  random_graph(g, 1, 40, 2);
  std::vector<std::pair<Node*, int>> asked;
  for (int i = 0; i < 12; ++i) {
    const char* names[] = {"/CPU:0", "/GPU:0", "/GPU:1"};
    asked.emplace_back(g.work("asked", 30, {}, 4, names[i % 3]), i % 3);
  }
  const Placement best = placed(g.graph, costs, PlacementPolicy::kCost);
  for (const auto& [node, device] : asked) {
    EXPECT_EQ(best.device(*node), device);
    EXPECT_EQ(best.of(*node).by, PlacedBy::kRequest);
  }
}

TEST(CostPolicyTest, NeverSlowerThanGreedyOrAnyOneDevice) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const CostModel costs(devices(1 + static_cast<int>(seed % 3)));
    WorkGraph g;
    random_graph(g, seed, 10 + static_cast<int>(seed) * 5, seed % 2 == 0 ? 2 : 40);
    const double ours = makespan(g.graph, placed(g.graph, costs, PlacementPolicy::kCost), costs);
    EXPECT_LE(ours, makespan(g.graph, placed(g.graph, costs, PlacementPolicy::kGreedy), costs));
    for (int d = 0; d < costs.devices().size(); ++d) {
      EXPECT_LE(ours, makespan(g.graph, all_on(g.graph, costs.devices(), d), costs));
    }
  }
}

TEST(CostPolicyTest, NearTheOptimumOfSmallGraphs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const CostModel costs(devices(2));
    WorkGraph g;
    random_graph(g, seed, 6, 5);
    Placement any = all_on(g.graph, costs.devices(), 0);
    double best = std::numeric_limits<double>::infinity();
    for (int code = 0; code < 729; ++code) {
      for (int i = 0, rest = code; i < 6; ++i, rest /= 3)
        any.nodes[static_cast<std::size_t>(i)].device = rest % 3;
      best = std::min(best, makespan(g.graph, any, costs));
    }
    EXPECT_LE(makespan(g.graph, placed(g.graph, costs, PlacementPolicy::kCost), costs), 1.05 * best)
        << "seed " << seed;
  }
}

TEST(CostPolicyTest, SameEveryTime) {
  const CostModel costs(devices(3));
  WorkGraph g;
  random_graph(g, 5, 200, 10);
  const Placement a = placed(g.graph, costs, PlacementPolicy::kCost);
  const Placement b = placed(g.graph, costs, PlacementPolicy::kCost);
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    EXPECT_EQ(a.nodes[i].device, b.nodes[i].device);
    EXPECT_EQ(a.nodes[i].reason, b.nodes[i].reason);
  }
}

TEST(CostPolicyTest, KeepsWithinTheMemory) {
  DeviceSet set = devices(2);
  for (int d = 1; d <= 2; ++d) {
    set.devices[static_cast<std::size_t>(d)].link_bandwidth = 1e6;
    set.devices[static_cast<std::size_t>(d)].memory_bytes = 5000;
  }
  const CostModel costs(set);
  WorkGraph g;
  std::vector<Node*> values;
  for (int i = 0; i < 8; ++i) values.push_back(g.work("v", 40, {}, 1000));
  for (int i = 0; i < 8; ++i)
    g.work("use", 40,
           {values[static_cast<std::size_t>(i)], values[static_cast<std::size_t>(7 - i)]}, 4);
  const Placement greedy = placed(g.graph, costs, PlacementPolicy::kGreedy);
  EXPECT_GT(simulate(TaskGraph::of(g.graph, greedy, costs)).peak_memory[1], 5000);
  const Placement best = placed(g.graph, costs, PlacementPolicy::kCost);
  const Simulation run = simulate(TaskGraph::of(g.graph, best, costs));
  EXPECT_LE(run.peak_memory[1], 5000);
  EXPECT_LE(run.peak_memory[2], 5000);
}

TEST(CostPolicyTest, AThousandDevices) {
  DeviceSet set = devices(1000);
  const CostModel costs(set);
  WorkGraph g;
  for (int i = 0; i < 300; ++i) g.work("w", 40, {}, 4);
  const Placement best = placed(g.graph, costs, PlacementPolicy::kCost);
  EXPECT_DOUBLE_EQ(makespan(g.graph, best, costs), 10);
}

}  // namespace
}  // namespace tandem::schedule_test
