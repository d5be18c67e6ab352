#include "tandem/placement/internal/evaluator.h"

#include <limits>

#include <gtest/gtest.h>

#include "tandem/placement/simulator.h"

#include "tests/unit/placement/schedule_util.h"

namespace tandem::placement {
namespace {

using schedule_test::Random;
using schedule_test::WorkGraph;

// A graph with views and variables, any node allowed anywhere.
void random_graph(WorkGraph& g, std::uint64_t seed) {
  Random random(seed);
  std::vector<Node*> all{g.arg("x", 40)};
  g.variable("v", 100);
  for (int i = 0; i < 40; ++i) {
    const auto any = [&] {
      return all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))];
    };
    if (random.below(5) == 0) {
      all.push_back(g.same("view", any()));
      continue;
    }
    std::vector<Node*> inputs;
    for (int k = random.below(4); k > 0; --k) inputs.push_back(any());
    all.push_back(g.work("n", random.below(20), inputs, 4 * (1 + random.below(20))));
    if (random.below(4) == 0) g.graph.add_control_input(all.back(), all[1]);
  }
}

Constraints anywhere(const Graph& graph, int devices) {
  Constraints constraints;
  constraints.group.assign(static_cast<std::size_t>(graph.id_limit()), -1);
  constraints.allowed.emplace_back();
  for (int d = 0; d < devices; ++d) constraints.allowed[0].push_back(d);
  for (const auto& node : graph.nodes()) {
    constraints.group[static_cast<std::size_t>(node->id())] =
        static_cast<int>(constraints.groups.size());
    constraints.groups.emplace_back();
  }
  return constraints;
}

// The search's own way of running gives what the simulator gives of the finished placement.
TEST(EvaluatorTest, AgreesWithTheSimulator) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    DeviceSet set = schedule_test::devices(3);
    set.devices[2].memory_bytes = 200;
    set.devices[3].memory_bytes = 1;
    const CostModel costs(set);
    WorkGraph g;
    random_graph(g, seed);
    const Constraints constraints = anywhere(g.graph, set.size());
    const Problem problem(g.graph, costs, constraints);
    ASSERT_TRUE(problem.limited);
    Evaluator evaluator(problem);
    Random random(seed);
    for (int round = 0; round < 5; ++round) {
      Assignment assignment;
      Placement placement = schedule_test::all_on(g.graph, set, 0);
      for (const auto& node : g.graph.nodes()) {
        assignment.push_back(random.below(set.size()));
        placement.nodes[static_cast<std::size_t>(node->id())].device = assignment.back();
      }
      const Simulation run = simulate(TaskGraph::of(g.graph, placement, costs));
      const Score score = evaluator.score(assignment);
      EXPECT_DOUBLE_EQ(score.makespan, run.makespan) << "seed " << seed;
      EXPECT_DOUBLE_EQ(score.excess, std::max(0.0, run.peak_memory[2] - 200) +
                                         std::max(0.0, run.peak_memory[3] - 1))
          << "seed " << seed;
    }
  }
}

TEST(EvaluatorTest, GivesUpOnlyWhereTheLimitIsNotMet) {
  const CostModel costs(schedule_test::devices(2));
  WorkGraph g;
  random_graph(g, 4);
  const Constraints constraints = anywhere(g.graph, 3);
  const Problem problem(g.graph, costs, constraints);
  Evaluator evaluator(problem);
  const Assignment assignment(constraints.groups.size(), 1);
  const double makespan = evaluator.score(assignment).makespan;
  EXPECT_EQ(evaluator.score(assignment, {0, makespan * 1.001}).makespan, makespan);
  EXPECT_EQ(evaluator.score(assignment, {0, makespan * 0.999}).makespan,
            std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tandem::placement
