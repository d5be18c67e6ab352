#include "tandem/placement/simulator.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/placement/schedule_util.h"

namespace tandem::schedule_test {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(SimulatorTest, TwoLanesSideBySide) {
  TaskGraph tasks;
  tasks.lanes = lanes(2);
  const int a = add(tasks, 0, 2);
  const int b = add(tasks, 1, 3);
  add(tasks, 0, 4, {a, b});
  const Simulation run = simulate(tasks);
  EXPECT_DOUBLE_EQ(run.makespan, 7);
  ASSERT_EQ(run.spans.size(), 3u);
  EXPECT_EQ(run.spans[2].task, 2);
  EXPECT_DOUBLE_EQ(run.spans[2].begin, 3);
  EXPECT_DOUBLE_EQ(run.spans[2].end, 7);
  EXPECT_THAT(run.busy, ElementsAre(DoubleEq(6.0 / 7), DoubleEq(3.0 / 7)));
}

TEST(SimulatorTest, WidthIsTasksSideBySide) {
  TaskGraph tasks;
  tasks.lanes = lanes(1, 2);
  for (int i = 0; i < 4; ++i) add(tasks, 0, 1);
  const Simulation run = simulate(tasks);
  EXPECT_DOUBLE_EQ(run.makespan, 2);
  EXPECT_THAT(run.busy, ElementsAre(DoubleEq(1)));
}

TEST(SimulatorTest, NothingToDo) {
  TaskGraph tasks;
  tasks.lanes = lanes(2);
  const Simulation run = simulate(tasks);
  EXPECT_EQ(run.makespan, 0);
  EXPECT_THAT(run.busy, ElementsAre(0, 0));
}

TEST(SimulatorTest, WhatTakesNoTimeIsInOrderAllTheSame) {
  TaskGraph tasks;
  tasks.lanes = lanes(2);
  const int a = add(tasks, 0, 0);
  const int b = add(tasks, 1, 0, {a});
  add(tasks, 0, 1, {b});
  EXPECT_DOUBLE_EQ(simulate(tasks).makespan, 1);
}

// A second way of running: at each moment in which something ends, go through all tasks by
// priority and begin what can be begun.
double slow_makespan(const TaskGraph& tasks) {
  const std::vector<double> path = tasks.remaining_path();
  const std::size_t n = tasks.tasks.size();
  std::vector<int> waiting = tasks.before, order;
  for (std::size_t t = 0; t < n; ++t) order.push_back(static_cast<int>(t));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return path[static_cast<std::size_t>(a)] > path[static_cast<std::size_t>(b)];
  });
  std::vector<double> end(n, -1);
  std::vector<char> over(n, 0);
  std::vector<int> running(tasks.lanes.size(), 0);
  double now = 0;
  for (std::size_t left = n; left > 0;) {
    for (const int task : order) {
      const auto t = static_cast<std::size_t>(task);
      const auto lane = static_cast<std::size_t>(tasks.tasks[t].lane);
      if (end[t] >= 0 || waiting[t] > 0 || running[lane] == tasks.lanes[lane].width) continue;
      end[t] = now + tasks.tasks[t].seconds;
      ++running[lane];
    }
    double next = -1;
    for (std::size_t t = 0; t < n; ++t) {
      if (end[t] >= 0 && !over[t] && (next < 0 || end[t] < next)) next = end[t];
    }
    now = next;
    for (std::size_t t = 0; t < n; ++t) {
      if (end[t] != now || over[t]) continue;
      over[t] = 1;
      --left;
      --running[static_cast<std::size_t>(tasks.tasks[t].lane)];
      for (const int then : tasks.after[t]) --waiting[static_cast<std::size_t>(then)];
    }
  }
  return now;
}

TEST(SimulatorTest, AgreesWithASlowRun) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const TaskGraph tasks = random_tasks(
        seed, 50, {{0, Lane::kCompute, 1, 1}, {0, Lane::kCompute, 2, 2}, {0, Lane::kCopyIn, 1, 1}});
    EXPECT_DOUBLE_EQ(simulate(tasks).makespan, slow_makespan(tasks)) << "seed " << seed;
  }
}

TEST(SimulatorTest, SameRunEveryTime) {
  const TaskGraph tasks = random_tasks(3, 200, lanes(4, 1, 2));
  const Simulation a = simulate(tasks), b = simulate(tasks);
  ASSERT_EQ(a.spans.size(), b.spans.size());
  for (std::size_t i = 0; i < a.spans.size(); ++i) {
    EXPECT_EQ(a.spans[i].task, b.spans[i].task);
    EXPECT_EQ(a.spans[i].begin, b.spans[i].begin);
  }
}

TEST(SimulatorTest, PeakOfMemory) {
  TaskGraph tasks;
  tasks.lanes = lanes(1);
  const int a = add(tasks, 0, 1);
  const int b = add(tasks, 0, 1, {a});
  const int c = add(tasks, 0, 1, {b});
  tasks.allocations = {{0, 100, nullptr, a, {b}, false},  // released when b is over
                       {0, 10, nullptr, b, {c}, false},
                       {0, 50, nullptr, c, {}, false},
                       {0, 1, nullptr, -1, {}, true},     // all the time
                       {1, 7, nullptr, -1, {a}, false}};  // of another memory
  EXPECT_THAT(simulate(tasks).peak_memory, ElementsAre(111, 7));
  tasks.allocations[0].until = {b, c};
  EXPECT_THAT(simulate(tasks).peak_memory, ElementsAre(161, 7));
}

}  // namespace
}  // namespace tandem::schedule_test
