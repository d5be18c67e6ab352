// Planning over the devices of several tasks.

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/placement/placement.h"
#include "tandem/placement/simulator.h"

#include "tests/unit/placement/schedule_util.h"

namespace tandem::schedule_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two tasks, each a CPU and a GPU; a byte takes 1 s on a GPU's link.
std::string two_tasks(const std::string& network) {
  return R"({"devices": [
      {"name": "/job:worker/task:0/CPU:0", "tasks": 2, "flops": 1, "bandwidth": 1000},
      {"name": "/job:worker/task:0/GPU:0", "tasks": 2, "flops": 4, "bandwidth": 1000, "link": 1}])" +
         network + "}";
}

enum Device { kCpu0, kCpu1, kGpu0, kGpu1 };

Placement placed(const Graph& graph, const DeviceSet& set, PlacementPolicy policy) {
  static const KernelRegistry kernels;
  PlacementOptions options;
  options.policy = policy;
  return place(graph, CostModel(set), kernels, options);
}

double makespan(const Graph& graph, const Placement& placement, const DeviceSet& set) {
  return simulate(TaskGraph::of(graph, placement, CostModel(set))).makespan;
}

TEST(HostsTest, EachTaskHasAMemoryOfItsOwn) {
  const DeviceSet set =
      DeviceSet::parse_json(two_tasks(R"(, "network": {"bandwidth": 2, "latency": "3s"})"));
  ASSERT_EQ(set.size(), 4);
  EXPECT_EQ(set.devices[kGpu1].name(), "/job:worker/replica:0/task:1/device:GPU:0");
  EXPECT_EQ(set.memory_of(kCpu0), kCpu0);
  EXPECT_EQ(set.memory_of(kCpu1), kCpu1);
  EXPECT_EQ(set.host_of(kGpu1), kCpu1);
  EXPECT_EQ(set.copy_seconds(kCpu0, kGpu0, 10), 10);
  EXPECT_EQ(set.copy_seconds(kCpu0, kCpu1, 10), 8);
  // To the own host, over the network, to the other device.
  EXPECT_EQ(set.copy_seconds(kGpu0, kGpu1, 10), 28);
}

TEST(HostsTest, LinksJoinHosts) {
  const DeviceSet set = DeviceSet::parse_json(R"({
      "devices": [
        {"name": "/job:worker/task:0/CPU:0", "host": "a", "flops": 1, "bandwidth": 100},
        {"name": "/job:worker/task:1/CPU:0", "host": "a", "flops": 1, "bandwidth": 100},
        {"name": "/job:worker/task:2/CPU:0", "host": "b", "flops": 1, "bandwidth": 100},
        {"name": "/job:ps/task:0/CPU:0", "flops": 1, "bandwidth": 100}],
      "links": [{"between": ["b", "a"], "bandwidth": 10, "latency": "1s"},
                {"between": ["/job:ps/task:0", "b"], "bandwidth": 5}],
      "network": {"bandwidth": 1}})");
  EXPECT_EQ(set.copy_seconds(0, 1, 100), 1);  // within a machine: its memory
  EXPECT_EQ(set.copy_seconds(0, 2, 100), 11);
  EXPECT_EQ(set.copy_seconds(2, 1, 100), 11);
  EXPECT_EQ(set.copy_seconds(3, 2, 100), 20);
  EXPECT_EQ(set.copy_seconds(3, 0, 100), 100);
}

TEST(HostsTest, RefusesWhatDoesNotFit) {
  const auto refusal = [](const std::string& text) {
    return refused([&] { DeviceSet::parse_json(text); });
  };
  EXPECT_THAT(refusal(two_tasks("")),
              HasSubstr("neither a 'network' nor a link between the hosts "
                        "'/job:worker/replica:0/task:0' and '/job:worker/replica:0/task:1'"));
  EXPECT_THAT(refusal(two_tasks(R"(, "network": {"latency": "1s"})")),
              HasSubstr("network needs 'bandwidth'"));
  EXPECT_THAT(refusal(two_tasks(R"(, "links": [{"between": ["x", "y"], "bandwidth": 1}])")),
              HasSubstr("links[0].between: no device is on the host 'x'"));
  EXPECT_THAT(refusal(two_tasks(R"(, "links": [{"between": ["x"], "bandwidth": 1}])")),
              HasSubstr("links[0].between must name two hosts"));
  EXPECT_THAT(refusal(R"({"devices": [
                  {"name": "CPU:0", "flops": 1, "bandwidth": 1},
                  {"name": "/job:worker/task:3/GPU:0", "flops": 1, "bandwidth": 1, "link": 1}],
                  "network": {"bandwidth": 1}})"),
              HasSubstr("/job:worker/replica:0/task:3 has the device "
                        "/job:worker/replica:0/task:3/device:GPU:0 but no CPU"));
}

TEST(HostsTest, ValuesGoFromHostToHost) {
  const DeviceSet set = DeviceSet::parse_json(two_tasks(R"(, "network": {"bandwidth": 2})"));
  WorkGraph g;
  Node* a = g.work("a", 4, {}, 8);
  Node* b = g.work("b", 4, {a}, 4);
  Node* c = g.work("c", 1, {a}, 4);
  Placement placement = all_on(g.graph, set, kGpu0);
  placement.nodes[static_cast<std::size_t>(b->id())].device = kGpu1;
  placement.nodes[static_cast<std::size_t>(c->id())].device = kCpu1;
  const TaskGraph tasks = TaskGraph::of(g.graph, placement, CostModel(set));
  // Both readers share the way to the second task.
  ASSERT_EQ(tasks.copies.size(), 3u);
  std::vector<std::pair<int, int>> ways;
  std::vector<int> lanes;
  for (const PlannedCopy& copy : tasks.copies) ways.emplace_back(copy.from, copy.to);
  for (const Task& task : tasks.tasks) {
    if (task.copy >= 0) lanes.push_back(task.lane);
  }
  EXPECT_THAT(ways,
              ElementsAre(std::pair<int, int>(kGpu0, kCpu0), std::pair<int, int>(kCpu0, kCpu1),
                          std::pair<int, int>(kCpu1, kGpu1)));
  // Out of the GPU, into the second host, into its GPU.
  EXPECT_THAT(lanes, ElementsAre(3 * kGpu0 + 2, 3 * kCpu1 + 1, 3 * kGpu1 + 1));
  // a 1 s, to the host 8 s, over the network 4 s, to the GPU 8 s, b 1 s.
  EXPECT_DOUBLE_EQ(simulate(tasks).makespan, 22);
}

// Two chains that share nothing but their end.
void two_chains(WorkGraph& g, double bytes) {
  std::vector<Node*> ends;
  for (const char* chain : {"a", "b"}) {
    Node* at = g.work(chain, 400, {}, bytes);
    for (int i = 0; i < 3; ++i) at = g.work(chain, 400, {at}, bytes);
    ends.push_back(at);
  }
  g.work("join", 4, ends, 4);
}

TEST(HostsTest, TheCostPolicyLooksAtTheNetwork) {
  const DeviceSet fast = DeviceSet::parse_json(two_tasks(R"(, "network": {"bandwidth": 100})"));
  const DeviceSet slow =
      DeviceSet::parse_json(two_tasks(R"(, "network": {"bandwidth": 100, "latency": "2000s"})"));
  WorkGraph g;
  two_chains(g, 4);
  const Placement over_both = placed(g.graph, fast, PlacementPolicy::kCost);
  const Placement on_one = placed(g.graph, slow, PlacementPolicy::kCost);
  // Side by side: 400 s, the way to the other task and the join.
  EXPECT_NEAR(makespan(g.graph, over_both, fast), 409, 1);
  EXPECT_LE(makespan(g.graph, on_one, slow), 801);
  for (const auto& node : g.graph.nodes())
    EXPECT_EQ(slow.host_of(on_one.device(*node)), slow.host_of(on_one.device(*g.graph.nodes()[0])));
}

TEST(HostsTest, TheCostPolicyIsNeverSlowerThanGreedy) {
  const DeviceSet set =
      DeviceSet::parse_json(two_tasks(R"(, "network": {"bandwidth": 3, "latency": "5s"})"));
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    WorkGraph g;
    std::vector<Node*> all;
    for (int i = 0; i < 30; ++i) {
      std::vector<Node*> inputs;
      for (int k = random.below(3); k > 0 && i > 0; --k)
        inputs.push_back(all[static_cast<std::size_t>(random.below(i))]);
      all.push_back(
          g.work("n" + std::to_string(i), 4 + random.below(80), inputs, 4 * (1 + random.below(5))));
    }
    const Placement greedy = placed(g.graph, set, PlacementPolicy::kGreedy);
    const Placement best = placed(g.graph, set, PlacementPolicy::kCost);
    EXPECT_LE(makespan(g.graph, best, set), makespan(g.graph, greedy, set) + 1e-9) << seed;
  }
}

}  // namespace
}  // namespace tandem::schedule_test
