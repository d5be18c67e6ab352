// What an observed iteration reports of its stages.
#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/dataset_base.h"
#include "tandem/data/pipeline_stats.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PipelineStats stats_of(const Dataset& dataset, std::size_t limit = 1000000) {
  auto it = dataset.iterator({.observe = true});
  Element element;
  for (std::size_t i = 0; i < limit && it.next(element); ++i) {
  }
  return it.stats();
}

// "Batch(Map(Range))"
std::string tree(const PipelineStats& stats, std::size_t at = 0) {
  std::string text = stats.stages[at].name + (stats.stages[at].nested ? "*" : "");
  const char* separator = "(";
  for (const int input : stats.stages[at].inputs) {
    EXPECT_EQ(stats.stages[static_cast<std::size_t>(input)].consumer, static_cast<int>(at));
    text += separator + tree(stats, static_cast<std::size_t>(input));
    separator = ", ";
  }
  return text + (stats.stages[at].inputs.empty() ? "" : ")");
}

std::vector<std::int64_t> elements(const PipelineStats& stats) {
  std::vector<std::int64_t> all;
  for (const auto& stage : stats.stages) all.push_back(stage.elements);
  return all;
}

// Takes a time that any clock sees, at each call.
const auto slowly = [time = std::chrono::milliseconds(2)](Tensor x) {
  std::this_thread::sleep_for(time);
  return x;
};

TEST(PipelineStats, CountsElementsAndBytesOfEachStage) {
  const auto ds = range(10).map([](Tensor x) { return plus(x, 1); }).batch(4);
  const PipelineStats stats = stats_of(ds);
  EXPECT_EQ(tree(stats), "Batch(Map(Range))");
  EXPECT_THAT(elements(stats), ElementsAre(3, 10, 10));
  EXPECT_EQ(stats.stages[0].bytes, 80);
  EXPECT_EQ(stats.stages[2].bytes, 80);
  EXPECT_DOUBLE_EQ(stats.stages[1].bytes_per_element(), 8);
  EXPECT_EQ(stats.elements, 3);
  EXPECT_EQ(stats.stages[0].threads, 0);
  EXPECT_EQ(stats.stages[0].waited_for, 0);
}

TEST(PipelineStats, GiveTheSameElements) {
  const auto make = [] {
    return from_tensor_slices(Tensor::from(std::vector<std::int64_t>{5, 6, 7, 8, 9}, {5}))
        .shuffle(3, {.seed = 3})
        .repeat(2)
        .batch(2)
        .prefetch(1);
  };
  auto it = make().iterator({.observe = true});
  Element element;
  std::string seen;
  while (it.next(element)) seen += element[0].to_string();
  std::string unobserved;
  for (const Element& e : make()) unobserved += e[0].to_string();
  EXPECT_EQ(seen, unobserved);
  const PipelineStats stats = it.stats();
  // Rows go by as numbers and count all the same.
  EXPECT_EQ(tree(stats), "Prefetch(Batch(Shuffle+Repeat(TensorSlice)))");
  EXPECT_THAT(elements(stats), ElementsAre(5, 5, 10, 10));
  EXPECT_EQ(stats.stages[3].bytes, 80);
}

TEST(PipelineStats, ReportOwnTimesApart) {
  const PipelineStats stats = stats_of(range(10).map(slowly).batch(5).map(slowly));
  ASSERT_EQ(tree(stats), "Map(Batch(Map(Range)))");
  EXPECT_GE(stats.stages[0].work, 0.004);
  EXPECT_GE(stats.stages[2].work, 0.020);
  EXPECT_GE(stats.stages[2].work_per_element(), 0.002);
  // The batch took no time but its inputs'.
  EXPECT_LT(stats.stages[1].work, stats.stages[2].work);
  double work = 0;
  for (const auto& stage : stats.stages) work += stage.work;
  EXPECT_LE(work, stats.in_next);
  EXPECT_LE(stats.in_next, stats.seconds);
}

TEST(PipelineStats, ReportOfThreadsAndBuffers) {
  const PipelineStats stats =
      stats_of(range(20).map(slowly, {.num_parallel_calls = 2}).prefetch(3));
  ASSERT_EQ(tree(stats), "Prefetch(ParallelMap(Range))");
  const PipelineStats::Stage &prefetch = stats.stages[0], &map = stats.stages[1];
  EXPECT_EQ(prefetch.threads, 1);
  EXPECT_EQ(prefetch.buffer_size, 3);
  EXPECT_GT(prefetch.waited_for, 0);    // by the consumer, who does nothing else
  EXPECT_GT(prefetch.input_waited, 0);  // by its thread, for those of map
  EXPECT_EQ(map.threads, 2);
  EXPECT_EQ(map.buffer_size, 4);
  EXPECT_GE(map.work, 0.040);
  EXPECT_LT(map.input, map.work);
  EXPECT_FALSE(map.tuned);
  EXPECT_GE(prefetch.buffer_fill, 0);
  EXPECT_LE(prefetch.buffer_fill, 1);
}

TEST(PipelineStats, CountWhatFunctionsMakeTogether) {
  const auto ds = range(4).interleave([](const Tensor& x) { return range(x.item<std::int64_t>()); },
                                      {.cycle_length = 2});
  const PipelineStats stats = stats_of(ds);
  EXPECT_EQ(tree(stats), "Interleave(Range, Range*)");
  EXPECT_THAT(elements(stats), ElementsAre(6, 4, 6));
  const PipelineStats parallel = stats_of(
      range(4).interleave([](const Tensor& x) { return range(x.item<std::int64_t>()).map(slowly); },
                          {.cycle_length = 2, .num_parallel_calls = 2}));
  EXPECT_EQ(tree(parallel), "ParallelInterleave(Range, Map*(Range))");
  EXPECT_THAT(elements(parallel), ElementsAre(6, 4, 6, 6));
  EXPECT_EQ(parallel.stages[0].threads, 2);
}

// Runs as another dataset.
class StandInDataset final : public UnaryDataset {
 public:
  explicit StandInDataset(DatasetRef input)
      : UnaryDataset(std::move(input)), part_(range(4).map([](Tensor x) { return plus(x, 1); })) {}
  std::string name() const override { return "StandIn"; }
  std::unique_ptr<IteratorBase> make_iterator(const IterationContext& context) const override {
    return part_.base()->iterator(context);
  }

 private:
  const Dataset part_;
};

TEST(PipelineStats, LeaveOutWhatOnlyPassesOn) {
  const auto stand_in = make_dataset<StandInDataset>(range(4).base());
  EXPECT_EQ(tree(stats_of(stand_in.batch(2))), "Batch(Map(Range))");
  EXPECT_EQ(tree(stats_of(stand_in)), "Map(Range)");
  EXPECT_EQ(tree(stats_of(range(3).with_options({}).batch(2).with_options({}))), "Batch(Range)");
  EXPECT_EQ(
      tree(stats_of(range(3).flat_map([](const Tensor&) { return range(2).with_options({}); }))),
      "FlatMap(Range, Range*)");
}

TEST(PipelineStats, ReportInputsAndLaterPassesApart) {
  const auto twice = zip({range(5), range(3)}).repeat(2);
  const PipelineStats stats = stats_of(twice);
  EXPECT_EQ(tree(stats), "Repeat(Zip(Range, Range))");
  EXPECT_THAT(elements(stats), ElementsAre(6, 6, 8, 6));
}

TEST(PipelineStats, GoOnWhileTheIterationDoes) {
  auto it = range(100).batch(10).iterator({.observe = true});
  EXPECT_EQ(it.stats().elements, 0);
  EXPECT_EQ(it.stats().seconds, 0);
  it.next();
  EXPECT_EQ(it.stats().elements, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the consumer's step
  EXPECT_GE(it.stats().seconds, 0.005);
  EXPECT_LT(it.stats().waiting_share(), 1);
  const std::string state = it.save();
  EXPECT_EQ(it.next()[0].data<std::int64_t>()[0], 10);
  it.restore(state);
  EXPECT_EQ(it.stats().elements, 0);
  EXPECT_EQ(it.next()[0].data<std::int64_t>()[0], 10);
}

TEST(PipelineStats, CountAfterAnError) {
  auto it = range(3)
                .map([](Tensor x) {
                  if (x.item<std::int64_t>() == 1) throw std::runtime_error("no");
                  return x;
                })
                .iterator({.observe = true});
  it.next();
  EXPECT_THROW(it.next(), UnknownError);
  it.next();
  EXPECT_THAT(elements(it.stats()), ElementsAre(2, 3));
}

TEST(PipelineStats, AreThereOnlyWhereSomebodyObserves) {
  EXPECT_THAT(message_of_thrown<FailedPreconditionError>([] { range(3).iterator().stats(); }),
              HasSubstr("{.observe = true}"));
}

TEST(PipelineStats, PrintAsATable) {
  PipelineStats stats;
  stats.stages.resize(2);
  stats.stages[0] = {.name = "Batch", .inputs = {1}, .elements = 10, .bytes = 40960, .work = 1e-3};
  stats.stages[1] = {.name = "ParallelMap",
                     .consumer = 0,
                     .elements = 1000,
                     .bytes = 4000,
                     .work = 3e-3,
                     .waited_for = 2e-3,
                     .threads = 2,
                     .tuned = true,
                     .input_waited = 0.5,
                     .buffer_size = 4,
                     .buffer_fill = 0.25};
  std::ostringstream out;
  out << stats;
  EXPECT_EQ(out.str(),
            "stage          elements  work/element  of work  waited for  threads  they waited  "
            "     buffer  bytes/element\n"
            "Batch                10        100 µs   25.0 %                                    "
            "                  4.00 KiB\n"
            "  ParallelMap      1000       3.00 µs   75.0 %     2.00 ms  2 tuned       500 ms  "
            "25.0 % of 4            4 B\n");
}

}  // namespace
}  // namespace tandem::data
