#include "tandem/placement/list_scheduler.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/placement/schedule_util.h"

namespace tandem::schedule_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<int> finished(ListScheduler& scheduler, int task) {
  std::vector<int> lanes;
  scheduler.finish(task, lanes);
  return lanes;
}

TEST(ListSchedulerTest, LongestRemainingPathGoesFirst) {
  TaskGraph tasks;
  tasks.lanes = lanes(1);
  const int small = add(tasks, 0, 2);
  const int root = add(tasks, 0, 1);
  const int leaf = add(tasks, 0, 3, {root});
  ListScheduler scheduler(tasks, tasks.remaining_path());
  EXPECT_EQ(scheduler.issue(0), root);
  EXPECT_EQ(scheduler.issue(0), -1);  // the lane is full
  EXPECT_THAT(finished(scheduler, root), ElementsAre(0));
  EXPECT_EQ(scheduler.issue(0), leaf);
  finished(scheduler, leaf);
  EXPECT_FALSE(scheduler.done());
  EXPECT_EQ(scheduler.issue(0), small);
  finished(scheduler, small);
  EXPECT_TRUE(scheduler.done());
  EXPECT_EQ(scheduler.issue(0), -1);
}

TEST(ListSchedulerTest, OfEqualPathsTheFirstGoesFirst) {
  TaskGraph tasks;
  tasks.lanes = lanes(1, 1, 3);
  for (int i = 0; i < 3; ++i) add(tasks, 0, 1);
  ListScheduler scheduler(tasks, tasks.remaining_path());
  EXPECT_EQ(scheduler.issue(0), 0);
  EXPECT_EQ(scheduler.issue(0), 1);
  EXPECT_EQ(scheduler.issue(0), 2);
}

TEST(ListSchedulerTest, IssuesBehindAPredecessorOfTheSameLaneOfWidthOne) {
  TaskGraph tasks;
  tasks.lanes = lanes(2, 1, 2);
  const int first = add(tasks, 0, 1);
  const int then = add(tasks, 0, 1, {first});
  const int elsewhere = add(tasks, 1, 1, {first});
  const int last = add(tasks, 0, 1, {then, elsewhere});
  ListScheduler scheduler(tasks, tasks.remaining_path());
  EXPECT_EQ(scheduler.issue(1), -1);
  EXPECT_EQ(scheduler.issue(0), first);
  EXPECT_EQ(scheduler.issue(0), then);
  EXPECT_EQ(scheduler.issue(0), -1);  // two are issued and not over
  EXPECT_EQ(scheduler.issue(1), -1);  // of another lane: only when `first` is over
  EXPECT_THAT(finished(scheduler, first), UnorderedElementsAre(0, 1));
  EXPECT_EQ(scheduler.issue(1), elsewhere);
  EXPECT_EQ(scheduler.issue(0), -1);  // `elsewhere` is not over
  EXPECT_THAT(finished(scheduler, elsewhere), UnorderedElementsAre(0, 1));
  EXPECT_EQ(scheduler.issue(0), last);
}

TEST(ListSchedulerTest, OnAWideLaneAPredecessorMustBeOver) {
  TaskGraph tasks;
  tasks.lanes = lanes(1, 2, 4);
  const int first = add(tasks, 0, 1);
  const int then = add(tasks, 0, 1, {first});
  ListScheduler scheduler(tasks, tasks.remaining_path());
  EXPECT_EQ(scheduler.issue(0), first);
  EXPECT_EQ(scheduler.issue(0), -1);
  finished(scheduler, first);
  EXPECT_EQ(scheduler.issue(0), then);
}

TEST(ListSchedulerTest, EdgeSaidTwiceCountsOnce) {
  TaskGraph tasks;
  tasks.lanes = lanes(2);
  const int first = add(tasks, 0, 1);
  const int then = add(tasks, 1, 1, {first, first});
  EXPECT_EQ(tasks.before[static_cast<std::size_t>(then)], 1);
  ListScheduler scheduler(tasks, tasks.remaining_path());
  EXPECT_EQ(scheduler.issue(0), first);
  finished(scheduler, first);
  EXPECT_EQ(scheduler.issue(1), then);
}

TEST(ListSchedulerTest, ACopyGoesOnByItself) {
  TaskGraph tasks;
  tasks.lanes = lanes(1);
  const int first = add(tasks, 0, 1);
  const int then = add(tasks, 0, 1, {first});
  auto scheduler = std::make_unique<ListScheduler>(tasks, tasks.remaining_path());
  EXPECT_EQ(scheduler->issue(0), first);
  ListScheduler copy = *scheduler;
  finished(*scheduler, first);
  EXPECT_EQ(scheduler->issue(0), then);
  scheduler.reset();
  EXPECT_EQ(copy.issue(0), -1);
  finished(copy, first);
  EXPECT_EQ(copy.issue(0), then);
  finished(copy, then);
  EXPECT_TRUE(copy.done());
}

TEST(ListSchedulerTest, BadLaneAndCircleAreRefused) {
  TaskGraph tasks;
  tasks.lanes = lanes(1);
  add(tasks, 1, 1);
  EXPECT_THAT(refused([&] { ListScheduler(tasks, {1.0}); }), HasSubstr("for lane 1 of 1"));
  tasks.tasks[0].lane = 0;
  const int other = add(tasks, 0, 1, {0});
  tasks.add_edge(other, 0);
  EXPECT_THAT(refused([&] { tasks.remaining_path(); }), HasSubstr("circle"));
}

// Plays a run with random ends, and checks what the scheduler promises.
void play(const TaskGraph& tasks, ListScheduler& scheduler, std::uint64_t seed) {
  Random random(seed);
  const std::size_t n = tasks.tasks.size();
  std::vector<std::vector<int>> before(n);
  for (std::size_t t = 0; t < n; ++t) {
    for (const int then : tasks.after[t])
      before[static_cast<std::size_t>(then)].push_back(static_cast<int>(t));
  }
  std::vector<int> issued_at(n, -1), over(n, 0);
  std::vector<std::vector<int>> running(tasks.lanes.size());
  int clock = 0, left = static_cast<int>(n);
  while (left > 0) {
    for (std::size_t lane = 0; lane < tasks.lanes.size(); ++lane) {
      const bool in_order = tasks.lanes[lane].width == 1;
      for (int task; (task = scheduler.issue(static_cast<int>(lane))) >= 0;) {
        const auto t = static_cast<std::size_t>(task);
        ASSERT_EQ(tasks.tasks[t].lane, static_cast<int>(lane));
        ASSERT_EQ(issued_at[t], -1) << "issued twice";
        for (const int first : before[t]) {
          const auto f = static_cast<std::size_t>(first);
          const bool ahead =
              in_order && issued_at[f] >= 0 && tasks.tasks[f].lane == tasks.tasks[t].lane;
          ASSERT_TRUE(over[f] || ahead) << "before what it waits for";
        }
        issued_at[t] = clock++;
        running[lane].push_back(task);
        ASSERT_LE(static_cast<int>(running[lane].size()),
                  std::max(tasks.lanes[lane].width, tasks.lanes[lane].depth));
      }
    }
    std::vector<std::size_t> busy;
    for (std::size_t lane = 0; lane < running.size(); ++lane) {
      if (!running[lane].empty()) busy.push_back(lane);
    }
    ASSERT_FALSE(busy.empty()) << "nothing runs, and not everything is over";
    auto& lane =
        running[busy[static_cast<std::size_t>(random.below(static_cast<int>(busy.size())))]];
    // A lane of width 1 ends in order.
    const int width =
        tasks.lanes[static_cast<std::size_t>(tasks.tasks[static_cast<std::size_t>(lane[0])].lane)]
            .width;
    const auto at = lane.begin() + random.below(std::min(width, static_cast<int>(lane.size())));
    const int task = *at;
    lane.erase(at);
    over[static_cast<std::size_t>(task)] = 1;
    --left;
    finished(scheduler, task);
  }
  EXPECT_TRUE(scheduler.done());
}

TEST(ListSchedulerTest, EachTaskOnceAndNeverBeforeItsPredecessors) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const TaskGraph tasks = random_tasks(seed, 60,
                                         {{0, Lane::kCompute, 1, 1},
                                          {0, Lane::kCompute, 1, 3},
                                          {0, Lane::kCompute, 2, 4},
                                          {0, Lane::kCopyIn, 3, 3}});
    ListScheduler scheduler(tasks, tasks.remaining_path());
    play(tasks, scheduler, seed);
    scheduler.reset();
    play(tasks, scheduler, seed + 1);
    if (HasFatalFailure()) return;
  }
}

TEST(ListSchedulerTest, IssuesNothingThatHasLessAheadThanSomethingReady) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const TaskGraph tasks = random_tasks(seed, 40, lanes(1));
    const std::vector<double> path = tasks.remaining_path();
    ListScheduler scheduler(tasks, path);
    std::vector<int> waiting = tasks.before;
    std::vector<char> over(tasks.tasks.size(), 0);
    while (!scheduler.done()) {
      const int task = scheduler.issue(0);
      for (std::size_t t = 0; t < over.size(); ++t) {
        if (waiting[t] == 0 && !over[t]) {
          ASSERT_LE(path[t], path[static_cast<std::size_t>(task)]);
        }
      }
      over[static_cast<std::size_t>(task)] = 1;
      for (const int then : tasks.after[static_cast<std::size_t>(task)])
        --waiting[static_cast<std::size_t>(then)];
      finished(scheduler, task);
    }
  }
}

}  // namespace
}  // namespace tandem::schedule_test
