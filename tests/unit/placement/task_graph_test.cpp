#include "tandem/placement/task_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/placement/simulator.h"

#include "tests/unit/placement/schedule_util.h"

namespace tandem::schedule_test {
namespace {

using ::testing::ElementsAre;

void put(Placement& placement, const Node* node, int device) {
  placement.nodes[static_cast<std::size_t>(node->id())].device = device;
}

TEST(TaskGraphTest, ThreeLanesADevice) {
  const auto all = TaskGraph::lanes_of(devices(2));
  ASSERT_EQ(all.size(), 9u);
  EXPECT_EQ(all[4].device, 1);
  EXPECT_EQ(all[4].kind, Lane::kCopyIn);
  EXPECT_EQ(all[8].kind, Lane::kCopyOut);
  EXPECT_EQ(TaskGraph::copy_lane(0, 2), 7);
  EXPECT_EQ(TaskGraph::copy_lane(1, 2), 7);  // the receiver's
  EXPECT_EQ(TaskGraph::copy_lane(1, 0), 5);
}

TEST(TaskGraphTest, EachValueIsCopiedOnceToEachMemory) {
  const DeviceSet set = devices(2);
  const CostModel costs(set);
  WorkGraph g;
  Node* x = g.arg("x", 8);
  Node* a = g.work("a", 4, {x}, 4);
  Node* b = g.work("b", 4, {a}, 4);
  Node* c = g.work("c", 4, {a, b}, 4);
  Node* d = g.work("d", 4, {a}, 4);
  Placement placement = all_on(g.graph, set, 0);
  put(placement, a, 1);
  put(placement, b, 2);
  put(placement, c, 2);
  put(placement, d, 0);
  const TaskGraph tasks = TaskGraph::of(g.graph, placement, costs);
  // x to GPU:0, a to GPU:1 once for both readers, a to the host.
  ASSERT_EQ(tasks.copies.size(), 3u);
  EXPECT_EQ(tasks.tasks.size(), 7u);  // x is no task
  EXPECT_EQ(tasks.copies[0].value.node, x);
  EXPECT_EQ(tasks.copies[1].from, 1);
  EXPECT_EQ(tasks.copies[1].to, 2);
  EXPECT_EQ(tasks.copies[1].seconds, 4);
  EXPECT_EQ(tasks.copies[2].to, 0);
  // 8 s for x, 1 s for a, then the copy to the host (4 s) and d (4 s); to the other 4 s + 1 s + 1
  // s.
  EXPECT_DOUBLE_EQ(simulate(tasks).makespan, 17);
}

TEST(TaskGraphTest, TasksStandInOrderAndEdgesOnce) {
  const DeviceSet set = devices(1);
  WorkGraph g;
  Node* a = g.work("a", 1);
  Node* b = g.work("b", 1, {a, a});
  g.graph.add_control_input(b, a);
  const TaskGraph tasks = TaskGraph::of(g.graph, all_on(g.graph, set, 1), CostModel(set));
  ASSERT_EQ(tasks.tasks.size(), 2u);
  EXPECT_THAT(tasks.after[0], ElementsAre(1));
  EXPECT_THAT(tasks.before, ElementsAre(0, 1));
}

TEST(TaskGraphTest, SharedMemoryIsHeldOnce) {
  const DeviceSet set = devices(1);
  WorkGraph g;
  Node* a = g.work("a", 4, {}, 400);
  Node* view = g.same("view", a);
  g.work("b", 4, {view}, 40);
  const Simulation run = simulate(TaskGraph::of(g.graph, all_on(g.graph, set, 1), CostModel(set)));
  EXPECT_THAT(run.peak_memory, ElementsAre(0, 440));
}

TEST(TaskGraphTest, VariablesAreHeldAllTheTime) {
  const DeviceSet set = devices(1);
  WorkGraph g;
  g.variable("v", 1000);
  g.work("a", 4, {}, 400);
  g.work("b", 4, {}, 400);
  const Simulation run = simulate(TaskGraph::of(g.graph, all_on(g.graph, set, 1), CostModel(set)));
  EXPECT_THAT(run.peak_memory, ElementsAre(0, 1400));
}

}  // namespace
}  // namespace tandem::schedule_test
