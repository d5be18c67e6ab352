// What is said of pipelines that explain runs, and how it ends.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tandem/data/explain.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/runtime/thread_context.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Stage = PipelineStats::Stage;

TEST(PipelineExplainRun, RunsADataset) {
  const auto slow = [time = std::chrono::milliseconds(1)](Tensor x) {
    std::this_thread::sleep_for(time);
    return x;
  };
  const auto e = explain(range(30).map(slow).batch(10));
  EXPECT_EQ(e.stats.elements, 3);
  EXPECT_EQ(e.slowest_stage, 1);
  EXPECT_GE(e.stats.stages[1].work, 0.030);
  EXPECT_EQ(explain(range(1).repeat().map(slow), {.seconds = 0, .elements = 5}).stats.elements, 5);
  const auto stepped = explain(range(100), {.seconds = 0, .elements = 5, .step = 0.002});
  EXPECT_GE(stepped.step, 0.002);
  EXPECT_LT(stepped.stats.waiting_share(), 1);
  EXPECT_LT(explain(range(1).repeat().map(slow), {.seconds = 0.02}).stats.elements, 100);
  EXPECT_THAT(explain(range(0)).to_text(), HasSubstr("0 elements"));
  EXPECT_THROW(explain(range(1), {.seconds = -1}), InvalidArgumentError);
  EXPECT_THROW(explain(range(1), {.elements = -1}), InvalidArgumentError);
}

TEST(PipelineExplainRun, EndsWhenNoElementComes) {
  const Dataset none = range(1).repeat().filter([](const Tensor&) { return false; });
  for (const Dataset& dataset : {none, none.batch(2).prefetch(1)}) {
    const auto e = explain(dataset, {.seconds = 0.1});
    EXPECT_TRUE(e.stopped);
    EXPECT_EQ(e.stats.elements, 0);
    EXPECT_THAT(e.to_text(), AllOf(HasSubstr("no element yet in "), HasSubstr("Filter")));
    EXPECT_GT(e.stats.waiting_share(), 0.5);
    EXPECT_GT(e.stats.stages.back().elements, 0);
    EXPECT_TRUE(nlohmann::json::parse(e.to_json())["stopped"]);
  }
  const auto ended = explain(range(0), {.seconds = 0.1});
  EXPECT_FALSE(ended.stopped);
  EXPECT_THAT(ended.to_text(), HasSubstr("0 elements in"));
}

TEST(PipelineExplainRun, ReportsOfFunctionsThatDoNotReturn) {
  std::atomic<bool> go{false};
  const Dataset waits = range(3).map([&](Tensor x) {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return x;
  });
  std::string reported;
  explain(waits,
          {.seconds = 0.05, .overdue = [&](const PipelineExplanation& e, std::exception_ptr) {
             reported = e.to_text();
             go = true;
           }});
  EXPECT_THAT(reported, AllOf(HasSubstr("no element yet in 1."), HasSubstr("Map")));
}

TEST(PipelineExplainRun, ReportsOfFunctionsThatDoNotReturnAfterTheLastElement) {
  for (const bool by_elements : {true, false}) {
    // The first element comes when the second's call, which does not return, has begun.
    std::atomic<bool> begun{false}, go{false};
    const Dataset waits = range(2).map(
        [&](Tensor x) {
          const bool second = x.item<std::int64_t>() == 1;
          if (second) begun = true;
          while (!go && (second || !begun)) std::this_thread::yield();
          return x;
        },
        {.num_parallel_calls = 2});
    PipelineExplanation reported;
    PipelineExplainOptions options{
        .overdue = [&](const PipelineExplanation& e, const std::exception_ptr& error) {
          EXPECT_EQ(error, nullptr);
          reported = e;
          go = true;
        }};
    if (by_elements) {
      options.seconds = 0;
      options.elements = 1;
    } else {
      options.seconds = 1e-9;
    }
    EXPECT_LE(explain(waits, options).stats.elements, 1);
    EXPECT_TRUE(go) << by_elements;
    if (by_elements) {
      EXPECT_FALSE(reported.stopped);
      EXPECT_EQ(reported.stats.elements, 1);
      EXPECT_THAT(reported.to_text(), HasSubstr("still in a call: ParallelMap"));
    }
  }
}

TEST(PipelineExplainRun, ReportsTheErrorThatFunctionsThatDoNotReturnKeepBack) {
  for (const bool cancelled : {false, true}) {
    std::atomic<bool> begun{false}, go{false};
    const Dataset fails = range(2).map(
        [&](Tensor x) {
          const bool second = x.item<std::int64_t>() == 1;
          if (second) begun = true;
          while (!go && (second || !begun)) std::this_thread::yield();
          if (!second && cancelled) throw CancelledError("given up");
          if (!second) throw DataLossError("a broken record");
          return x;
        },
        {.num_parallel_calls = 2});
    std::string error;
    const auto overdue = [&](const PipelineExplanation&, const std::exception_ptr& e) {
      error = message_of(e);
      go = true;
    };
    EXPECT_THROW(explain(fails, {.seconds = 0, .overdue = overdue}), Error);
    EXPECT_THAT(error, HasSubstr(cancelled ? "given up" : "a broken record"));
  }
}

TEST(PipelineExplainRun, CountsCallsThatGoOn) {
  const auto hanging = [](std::int64_t last, MapOptions options, bool prefetch) {
    const auto go = std::make_shared<std::atomic<bool>>(false);
    Dataset dataset = range(9).map(
        [go, last](Tensor x) {
          while (x.item<std::int64_t>() == last && !*go) std::this_thread::yield();
          return x;
        },
        options);
    if (prefetch) dataset = dataset.prefetch(1);
    PipelineExplanation reported;
    explain(dataset,
            {.seconds = 0.05, .overdue = [&, go](const PipelineExplanation& e, std::exception_ptr) {
               reported = e;
               *go = true;
             }});
    return reported;
  };
  struct Case {
    std::int64_t last;
    MapOptions options;
    bool prefetch;
  };
  for (const Case& c :
       {Case{0, {}, false}, {3, {}, false}, {0, {.num_parallel_calls = 2}, false}, {0, {}, true}}) {
    const PipelineExplanation e = hanging(c.last, c.options, c.prefetch);
    const auto& stages = e.stats.stages;
    const auto found = std::find_if(stages.begin(), stages.end(), [](const Stage& stage) {
      return stage.name.find("Map") != std::string::npos;
    });
    ASSERT_NE(found, stages.end());
    const Stage& map = *found;
    EXPECT_GE(map.in_call, 0.9);
    EXPECT_GE(map.work, 0.9);
    const bool by_consumer = !c.prefetch && c.options.num_parallel_calls == 0;
    EXPECT_GE(e.stats.in_next, by_consumer ? 0.9 : 0.02);  // else that was cancelled
    EXPECT_LT(e.stats.stages.back().work, 0.1);
    EXPECT_THAT(e.to_text(), HasSubstr("still in a call: " + map.name + ", for 1."));
  }
  // No stage is in a call while an iteration rests.
  auto it = range(9).map([](Tensor x) { return x; }).prefetch(1).iterator({.observe = true});
  it.next();
  EXPECT_EQ(it.stats().stages[0].in_call, 0);
}

TEST(PipelineExplainRun, IsInterrupted) {
  std::atomic<bool> interrupted{false};
  const Dataset dataset = range(1).repeat();
  std::thread stop([&] { interrupted = true; });
  const auto e = explain(dataset, {.seconds = 0, .step = 60, .interrupted = &interrupted});
  stop.join();
  EXPECT_LT(e.stats.seconds, 30);
}

TEST(PipelineExplainRun, IsCancelled) {
  const auto stop = std::make_shared<Cancellation>();
  const CancellationScope scope(stop);
  const Dataset none = range(1).repeat().filter([&](const Tensor&) {
    stop->cancel();
    return false;
  });
  EXPECT_THROW(explain(none, {.seconds = 100}), CancelledError);
}

}  // namespace
}  // namespace tandem::data
