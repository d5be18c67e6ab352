// Stages that wait more than they compute: what is said of them, and that they get more threads
// than there are cores.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "tandem/data/explain.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

Tensor sleeping(Tensor x) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return x;
}

Tensor computing(Tensor x) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  while (std::chrono::steady_clock::now() < end) {
  }
  return x;
}

PipelineExplanation explained(Tensor (*fn)(Tensor), std::int64_t calls) {
  const auto ds = range(60).map(fn, {.num_parallel_calls = calls, .traced = false});
  auto it = ds.iterator({.observe = true});
  numbers(it);
  return explain(it.stats(), 2);
}

// Waiting is wall time less computing less waiting for a core; the last is only reported by kernels
// that count it (schedstat). Where it is not, stages are never said to wait: nothing to test.
bool can_measure() { return std::filesystem::exists("/proc/thread-self/schedstat"); }

double idle_share(Tensor (*fn)(Tensor), std::int64_t calls) {
  const auto e = explained(fn, calls);
  return e.stats.stages[0].idle / e.stats.stages[0].work;
}

TEST(WaitingStages, AreReportedFromThoseThatCompute) {
  // Without the kernel's counts waiting cannot be distinguished from wanting a core: see
  // can_measure.
  if (!can_measure()) GTEST_SKIP() << "this system does not say for how long threads had no core";
  // Eight threads want cores, and have none most of the time: that is not waiting.
  EXPECT_GT(idle_share(sleeping, 2), idle_share(computing, 8));
}

TEST(WaitingStages, AreAdvisedToTakeMoreThreads) {
  PipelineStats stats;
  stats.stages = {{.name = "Map", .inputs = {1}, .elements = 60, .work = 0.3, .idle = 0.29},
                  {.name = "Range", .consumer = 0, .elements = 60, .work = 0.001}};
  stats.elements = 60;
  stats.seconds = stats.in_next = 0.301;
  const auto waiting = explain(stats, 2);
  EXPECT_THAT(waiting.to_text(), AllOf(HasSubstr("where it waits more than it computes\n"),
                                       HasSubstr("more threads than cores pay")));
  ASSERT_FALSE(waiting.advice.empty());
  EXPECT_GE(waiting.advice[0].gain, 4);
  stats.stages[0].idle = 0;
  EXPECT_THAT(explain(stats, 2).to_text(), Not(HasSubstr("where it waits")));
}

TEST(WaitingStages, GetMoreThreadsThanCores) {
  // Without the kernel's counts waiting cannot be distinguished from wanting a core: see
  // can_measure.
  if (!can_measure()) GTEST_SKIP() << "this system does not say for how long threads had no core";
  const auto ds =
      range(1).repeat().map(sleeping, {.num_parallel_calls = kAutotune, .traced = false});
  auto it = ds.iterator({.observe = true});
  const auto threads = [&] { return it.stats().stages[0].threads; };
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (threads() < 32 && std::chrono::steady_clock::now() < end) numbers(it, 20);
  EXPECT_GE(threads(), 32);
  EXPECT_LE(threads(), 64);
  // Who says how many threads there may be has so many.
  Options options;
  options.autotune.cpu_budget = 3;
  auto limited = ds.with_options(options).iterator({.observe = true});
  for (int i = 0; i < 10; ++i) {
    numbers(limited, 40);
    EXPECT_LE(limited.stats().stages[0].threads, 3);
  }
}

// Elements of `files` lists of five numbers, each of which takes 5 ms.
Dataset slow_lists(std::int64_t cycle, std::int64_t calls) {
  return range(1).repeat().interleave(
      [](const Tensor&) { return range(5).map(sleeping, {.traced = false}); },
      {.cycle_length = cycle, .num_parallel_calls = calls});
}

TEST(WaitingStages, AreReadByAsManyThreadsAsAreOpen) {
  // Without the kernel's counts waiting cannot be distinguished from wanting a core: see
  // can_measure.
  if (!can_measure()) GTEST_SKIP() << "this system does not say for how long threads had no core";
  auto it = slow_lists(12, kAutotune).iterator({.observe = true});
  const auto threads = [&] { return it.stats().stages[0].threads; };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (threads() < 12 && std::chrono::steady_clock::now() < end) numbers(it, 20);
  EXPECT_GE(threads(), 12);
  EXPECT_LE(threads(), 13);  // one opens the next
  EXPECT_EQ(it.stats().stages[0].cycle_length, 12);
}

TEST(WaitingStages, AreAdvisedToTakeALongerCycle) {
  PipelineStats stats;
  stats.stages = {
      {.name = "ParallelInterleave",
       .inputs = {1, 2},
       .elements = 100,
       .work = 0.001,
       .threads = 4,
       .tuned = true,
       .cycle_length = 4},
      {.name = "Range", .consumer = 0, .elements = 20, .work = 0.001},
      {.name = "Map", .consumer = 0, .nested = true, .elements = 100, .work = 0.5, .idle = 0.49}};
  stats.elements = 100;
  stats.seconds = stats.in_next = 0.13;
  using Advice = PipelineExplanation::Advice;
  const auto text = [](const auto& matcher) { return Field(&Advice::text, matcher); };
  EXPECT_THAT(explain(stats, 2).advice,
              Contains(AllOf(text(HasSubstr("Give this ParallelInterleave a cycle_length of 64")),
                             text(HasSubstr("no more than 4 datasets")),
                             text(HasSubstr("more threads than cores")),
                             Field(&Advice::gain, ::testing::Ge(4)))));
  // Whose cycle is long, or whose inputs compute, gains nothing by it.
  stats.stages[0].cycle_length = stats.stages[0].threads = 64;
  EXPECT_THAT(explain(stats, 2).to_text(), Not(HasSubstr("cycle_length")));
  stats.stages[0].cycle_length = stats.stages[0].threads = 4;
  stats.stages[2].idle = 0;
  EXPECT_THAT(explain(stats, 2).to_text(), Not(HasSubstr("cycle_length")));
  // Two datasets at a time keep no more than two cores at work.
  stats.stages[0].cycle_length = stats.stages[0].threads = 2;
  EXPECT_THAT(explain(stats, 8).to_text(), HasSubstr("a cycle_length of 8"));
  // A serial one gains by threads for what is open.
  stats.stages[0].name = "Interleave";
  stats.stages[0].threads = 0;
  stats.stages[0].tuned = false;
  EXPECT_THAT(explain(stats, 8).advice,
              Contains(AllOf(text(HasSubstr("Give this Interleave num_parallel_calls")),
                             Field(&Advice::gain, ::testing::Le(2.1)))));
}

TEST(PipelineExplain, NumbersStagesOfOneName) {
  PipelineStats stats;
  stats.stages = {{.name = "Map", .inputs = {1}, .elements = 10, .work = 1},
                  {.name = "Map", .consumer = 0, .inputs = {2}, .elements = 10, .work = 2},
                  {.name = "Generator", .consumer = 1, .elements = 10, .bytes = 40, .work = 9}};
  stats.elements = 10;
  stats.seconds = stats.in_next = 12;
  const auto e = explain(stats, 4);
  EXPECT_THAT(e.to_text(), AllOf(HasSubstr("\nMap 2 "), HasSubstr("\n  Map 1 ")));
  using Advice = PipelineExplanation::Advice;
  EXPECT_THAT(e.advice, Contains(Field(&Advice::text, HasSubstr("Give Map 1 num_parallel"))));
  // A generator may have no end; one that came to its end has one.
  EXPECT_THAT(e.to_text(), Not(HasSubstr("cache()")));
  stats.ended = true;
  EXPECT_THAT(explain(stats, 4).to_text(), HasSubstr("cache()"));
}

TEST(PipelineExplain, SaysThatADatasetIsEmpty) {
  EXPECT_THAT(explain(range(0).batch(2)).to_text(),
              HasSubstr("bottleneck: none: the dataset is empty\n"));
}

}  // namespace
}  // namespace tandem::data
