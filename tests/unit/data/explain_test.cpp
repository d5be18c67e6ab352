// What is said of an input pipeline: by made-up figures, and of pipelines that ran.
#include "tandem/data/explain.h"

#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Stage = PipelineStats::Stage;

// A chain of stages, the last one first, of which 100 elements came out; times in milliseconds an
// element.
PipelineStats chain(std::vector<Stage> stages, double step_ms = 0) {
  PipelineStats stats;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    Stage stage = stages[i];
    stage.consumer = static_cast<int>(i) - 1;
    stage.work *= 0.1;
    if (stage.elements == 0) stage.elements = 100;
    if (i + 1 < stages.size()) stage.inputs = {static_cast<int>(i) + 1};
    stats.in_next += stage.threads > 0 ? 0 : stage.work;
    stats.stages.push_back(stage);
  }
  stats.elements = 100;
  stats.seconds = stats.in_next + 0.1 * step_ms;
  return stats;
}

const PipelineExplanation::Advice* advice_with(const PipelineExplanation& e, const char* text) {
  for (const auto& advice : e.advice) {
    if (advice.text.find(text) != std::string::npos) return &advice;
  }
  return nullptr;
}

TEST(PipelineExplain, FindsTheStageThatDoesMost) {
  const auto e = explain(chain({{.name = "Batch", .work = 1},
                                {.name = "Map", .work = 8},
                                {.name = "TFRecord", .work = 1}}),
                         4);
  ASSERT_EQ(e.sections.size(), 1u);
  EXPECT_EQ(e.bottleneck, 0);
  EXPECT_EQ(e.slowest_stage, 1);
  EXPECT_NEAR(e.elements_per_second, 100, 1e-6);
  // On four threads: the map takes turns in the record reader, and the batch is made beside it.
  const auto* parallel = advice_with(e, "Give this Map num_parallel_calls = kAutotune");
  ASSERT_TRUE(parallel);
  EXPECT_EQ(parallel->stage, 1);
  EXPECT_NEAR(parallel->elements_per_second, 400, 1);
  EXPECT_NEAR(parallel->gain, 4, 0.01);
  EXPECT_THAT(e.to_text(), HasSubstr("bottleneck: Map, on the consumer's thread"));
}

TEST(PipelineExplain, CountsSectionsThatWorkAtTheSameTime) {
  const auto e = explain(chain({{.name = "Prefetch", .threads = 1},
                                {.name = "Batch", .work = 3},
                                {.name = "ParallelMap", .work = 8, .threads = 2},
                                {.name = "Range", .work = 1}},
                               2),
                         4);
  ASSERT_EQ(e.sections.size(), 3u);
  EXPECT_NEAR(e.step, 2e-3, 1e-9);
  EXPECT_NEAR(e.sections[0].elements_per_second, 500, 1e-6);      // the consumer's step
  EXPECT_NEAR(e.sections[1].elements_per_second, 1e3 / 3, 1e-6);  // the prefetch's thread
  EXPECT_NEAR(e.sections[2].elements_per_second, 2e3 / 9, 1e-6);  // two threads of the map
  EXPECT_EQ(e.bottleneck, 2);
  EXPECT_EQ(e.slowest_stage, 2);
  EXPECT_THAT(e.to_text(), HasSubstr("bottleneck: ParallelMap, on the 2 threads of ParallelMap"));
  const auto* wider = advice_with(e, "more than 2 threads");
  ASSERT_TRUE(wider);
  EXPECT_NEAR(wider->elements_per_second, 1e3 / 3, 1e-6);  // then the batch is the slowest
}

TEST(PipelineExplain, AdvisesAPrefetchWhereTheConsumerDoesAll) {
  const auto e = explain(chain({{.name = "Batch", .work = 4}, {.name = "Range", .work = 1}}, 5), 2);
  const auto* prefetch = advice_with(e, "prefetch(kAutotune) after this Batch");
  ASSERT_TRUE(prefetch);
  EXPECT_NEAR(prefetch->gain, 2, 0.01);
  EXPECT_EQ(
      advice_with(
          explain(chain({{.name = "Prefetch", .threads = 1}, {.name = "Batch", .work = 4}}, 5), 2),
          "prefetch"),
      nullptr);
}

TEST(PipelineExplain, SaysThatTheConsumerIsSlower) {
  const auto e =
      explain(chain({{.name = "Prefetch", .threads = 1}, {.name = "Map", .work = 1}}, 50), 2);
  EXPECT_EQ(e.bottleneck, 0);
  EXPECT_EQ(e.slowest_stage, -1);
  EXPECT_THAT(e.advice, IsEmpty());
  EXPECT_THAT(e.to_text(), HasSubstr("the consumer itself: the pipeline is fast enough"));
  EXPECT_THAT(e.to_text(), HasSubstr("advice: none"));
}

TEST(PipelineExplain, IsNotContentWhereTheConsumerWaits) {
  // Half of the time is the consumer's own, but it waits for input in the other half.
  const auto e = explain(chain({{.name = "Batch", .work = 2}, {.name = "Map", .work = 3}}, 5.5), 2);
  EXPECT_EQ(e.bottleneck, 0);
  EXPECT_EQ(e.slowest_stage, 1);
  EXPECT_THAT(e.to_text(), HasSubstr("bottleneck: Map, on the consumer's thread"));
  // The stages' work is no reason for what is measured.
  PipelineStats stats = chain({{.name = "Prefetch", .threads = 1}, {.name = "Map", .work = 1}}, 5);
  stats.in_next = stats.seconds = 1;
  stats.in_next *= 0.45;
  EXPECT_THAT(explain(stats, 2).to_text(),
              AllOf(HasSubstr("bottleneck: no stage by its work: threads waited for each other"),
                    Not(HasSubstr("fast enough"))));
}

TEST(PipelineExplain, KnowsThatPrefetchToDevicePrefetches) {
  const auto e = explain(
      chain({{.name = "PrefetchToDevice", .work = 1, .threads = 1}, {.name = "Batch", .work = 4}},
            5),
      2);
  EXPECT_EQ(advice_with(e, "prefetch"), nullptr);
  const auto copied =
      explain(chain({{.name = "CopyToDevice", .work = 1}, {.name = "Batch", .work = 4}}, 5), 2);
  EXPECT_NE(advice_with(copied, "Use prefetch_to_device in place of this CopyToDevice"), nullptr);
  EXPECT_EQ(advice_with(copied, "after this"), nullptr);
}

TEST(PipelineExplain, SaysThatAllCoresAreAtWork) {
  PipelineStats stats =
      chain({{.name = "ParallelMap", .work = 8, .threads = 8}, {.name = "Range", .work = 0.1}});
  stats.seconds = stats.in_next = 1;
  const auto e = explain(stats, 2);
  EXPECT_EQ(e.bottleneck, -1);
  EXPECT_THAT(e.to_text(), HasSubstr("bottleneck: the 2 cores, most of all in ParallelMap"));
  EXPECT_THAT(e.to_text(), HasSubstr("the stages' work allows 247 elements/s"));
}

TEST(PipelineExplain, AdvisesWhereToCacheAndToBatch) {
  std::vector<Stage> stages = {{.name = "Batch", .elements = 100, .bytes = 400, .work = 1},
                               {.name = "Map", .elements = 6400, .bytes = 400, .work = 1},
                               {.name = "Shuffle", .elements = 6400, .work = 0.1},
                               {.name = "Map", .elements = 6400, .bytes = 500, .work = 20},
                               {.name = "TextLine", .elements = 6400, .bytes = 600, .work = 1}};
  const auto e = explain(chain(stages), 1);
  const auto* cache = advice_with(e, "cache()");
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache->stage, 3);                                  // not behind the shuffle
  EXPECT_NEAR(cache->gain, 23.1 / (2.1 + 64 * 0.5e-3), 1e-6);  // 64 elements out of the cache
  // The map before the batch has short calls, but gains nothing worth while.
  EXPECT_EQ(advice_with(e, "Put batch before"), nullptr);
  stages[1].work = 64;
  stages[1].elements = 640000;
  const auto* batch = advice_with(explain(chain(stages), 1), "Put batch before Map 2");
  EXPECT_TRUE(batch);
}

// Small elements take longer to hand over than to make.
TEST(PipelineExplain, CountsWhatHandingElementsOverTakes) {
  const auto lines = [](std::int64_t lines_in_a_batch, std::int64_t files) {
    const std::int64_t all = 100 * lines_in_a_batch;
    return explain(chain({{.name = "Prefetch", .threads = 1},
                          {.name = "Batch", .work = 0.01},
                          {.name = "Shuffle", .elements = all, .work = 0.04},
                          {.name = "TextLine", .elements = all, .work = 0.05, .files = files}}),
                   4);
  };
  EXPECT_THAT(lines(32, 9).advice, IsEmpty());
  EXPECT_THAT(lines(32, 1).to_text(), HasSubstr("no single change would gain 10 %"));
  // The same work for few large ones is shared out.
  const auto large = lines(1, 2);
  const auto* prefetch = advice_with(large, "prefetch(kAutotune) after this TextLine");
  ASSERT_TRUE(prefetch);
  EXPECT_NEAR(prefetch->gain, 0.1 / 0.055, 1e-6);  // 5 us for handing them over
  // Two threads read two files.
  const auto* reads = advice_with(large, "Read several files at a time");
  ASSERT_TRUE(reads);
  EXPECT_NEAR(reads->gain, 0.1 / 0.055, 1e-6);
  EXPECT_EQ(advice_with(lines(1, 1), "several files"), nullptr);
}

// After a batch there are fewer to hand over.
TEST(PipelineExplain, PrefetchesWhereElementsAreLarge) {
  const auto e = explain(chain({{.name = "Map", .work = 0.3},
                                {.name = "Batch", .work = 0.01},
                                {.name = "Range", .elements = 3200, .work = 0.3}}),
                         2);
  EXPECT_NE(advice_with(e, "prefetch(kAutotune) after this Batch"), nullptr);
  EXPECT_EQ(advice_with(e, "prefetch(kAutotune) after this Range"), nullptr);
}

TEST(PipelineExplain, LetsTheConsumerDrawWhatInterleaveOpens) {
  PipelineStats stats = chain(
      {{.name = "ParallelInterleave", .work = 1, .threads = 2}, {.name = "Range", .work = 1}});
  stats.stages.push_back(
      {.name = "Map", .consumer = 0, .nested = true, .elements = 100, .work = 0.9});
  stats.stages[0].inputs = {1, 2};
  const auto e = explain(stats, 4);
  ASSERT_EQ(e.sections.size(), 2u);
  EXPECT_THAT(e.sections[0].stages, ::testing::ElementsAre(1));
  EXPECT_THAT(e.sections[1].stages, ::testing::ElementsAre(0, 2));
  EXPECT_NEAR(e.sections[1].elements_per_second, 200, 1e-6);
}

TEST(PipelineExplain, AdvisesMapsThatRunWithFilters) {
  for (const char* name : {"Map+Filter", "Filter+Map"}) {
    const auto e = explain(chain({{.name = "Batch", .work = 1}, {.name = name, .work = 9}}), 2);
    EXPECT_THAT(e.to_text(), HasSubstr(std::string("Give this ") + name + " num_parallel_calls"));
  }
}

TEST(PipelineExplain, PrintsJson) {
  const auto e = explain(chain({{.name = "Batch", .work = 1}, {.name = "Map", .work = 9}}), 2);
  const auto json = nlohmann::json::parse(e.to_json());
  EXPECT_EQ(json["elements"], 100);
  EXPECT_EQ(json["bottleneck_stage"], 1);
  EXPECT_EQ(json["stages"][1]["consumer"], 0);
  EXPECT_TRUE(json["stages"][0]["consumer"].is_null());
  EXPECT_EQ(json["sections"].size(), 1u);
  EXPECT_FALSE(json["advice"].empty());
  EXPECT_NEAR(json["model_elements_per_second"].get<double>(), 100, 1e-6);
}

}  // namespace
}  // namespace tandem::data
