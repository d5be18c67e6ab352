#include <algorithm>
#include <limits>

#include <gmock/gmock.h>

#include "tandem/runtime/runtime.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using List = std::vector<std::int64_t>;

List sorted(List list) {
  std::sort(list.begin(), list.end());
  return list;
}

// The literals are what tf.data 2.21 gives for the same seeds.
TEST(Shuffle, GivesTheOrdersOfTfData) {
  const auto ds = range(10).shuffle(4, {.seed = 42});
  EXPECT_EQ(numbers(ds), (List{1, 4, 2, 3, 5, 0, 6, 8, 7, 9}));
  EXPECT_EQ(numbers(ds), (List{3, 4, 2, 0, 1, 8, 5, 7, 9, 6}));
  EXPECT_EQ(numbers(ds), (List{0, 4, 5, 2, 3, 7, 8, 6, 9, 1}));
  EXPECT_EQ(numbers(ds), (List{0, 2, 1, 5, 7, 3, 6, 9, 8, 4}));
  EXPECT_EQ(numbers(range(10).shuffle(1000, {.seed = 42})), (List{5, 9, 6, 4, 7, 1, 2, 8, 3, 0}));
}

TEST(Shuffle, GivesTheOrdersOfTfDataForRowsToo) {
  const auto ds = from_tensor_slices(Tensor::from(upto(10))).shuffle(4, {.seed = 42});
  EXPECT_EQ(text(ds.batch(10)), "[1 4 2 3 5 0 6 8 7 9]");
  EXPECT_EQ(numbers(ds), (List{3, 4, 2, 0, 1, 8, 5, 7, 9, 6}));
}

TEST(Shuffle, GivesTheOrdersOfTfDataWhenRepeated) {
  const auto ds = range(10).shuffle(4, {.seed = 42});
  EXPECT_EQ(numbers(ds.repeat(3)), (List{1, 4, 2, 3, 5, 0, 6, 8, 7, 9, 3, 4, 2, 0, 1,
                                         8, 5, 7, 9, 6, 0, 4, 5, 2, 3, 7, 8, 6, 9, 1}));
  EXPECT_EQ(numbers(ds), (List{0, 2, 1, 5, 7, 3, 6, 9, 8, 4})) << "the pass after those";
}

TEST(Shuffle, KeepsItsOrderIfAsked) {
  const auto ds = range(10).shuffle(4, {.seed = 42, .reshuffle_each_iteration = false});
  EXPECT_EQ(numbers(ds), (List{0, 1, 3, 4, 5, 2, 6, 9, 7, 8}));
  EXPECT_EQ(numbers(ds), (List{0, 1, 3, 4, 5, 2, 6, 9, 7, 8}));
}

TEST(Shuffle, FollowsTheRuntimesSeed) {
  Runtime runtime(Runtime::Options{1, 1});
  RuntimeScope scope(runtime);
  runtime.set_seed(5);
  const auto ds = range(10).shuffle(4, {.seed = 42});
  EXPECT_EQ(numbers(ds), (List{2, 4, 3, 0, 6, 7, 8, 5, 9, 1}));
  EXPECT_EQ(numbers(ds), (List{3, 4, 1, 2, 0, 5, 7, 9, 8, 6}));
  EXPECT_EQ(numbers(range(10).shuffle(100, {.seed = 7, .reshuffle_each_iteration = false})),
            (List{0, 2, 9, 4, 5, 6, 3, 7, 8, 1}));
  runtime.set_seed(5);
  const auto first = numbers(range(100).shuffle(100)), second = numbers(range(100).shuffle(100));
  EXPECT_NE(first, second);
  runtime.set_seed(5);
  EXPECT_EQ(numbers(range(100).shuffle(100)), first);
}

TEST(Shuffle, DiffersFromRunToRunWithoutASeed) {
  EXPECT_NE(numbers(range(100).shuffle(100)), numbers(range(100).shuffle(100)));
}

TEST(Shuffle, KeepsEveryElement) {
  for (const std::int64_t buffer : {1, 2, 7, 99, 100, 1000}) {
    for (const Dataset& ds : {range(100), from_tensor_slices(Tensor::from(upto(100)))}) {
      EXPECT_EQ(sorted(numbers(ds.shuffle(buffer, {.seed = 1}))), upto(100)) << buffer;
    }
  }
  EXPECT_EQ(numbers(range(100).shuffle(1)), upto(100));
  EXPECT_EQ(numbers(range(0).shuffle(5)), upto(0));
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(sorted(numbers(range(100).shuffle(huge))), upto(100));
}

TEST(Shuffle, DoesNotDependOnHowFarThreadsRead) {
  const auto run = [](bool ahead) {
    auto shuffled = range(10).shuffle(10, {.seed = 3}).repeat();
    if (ahead) shuffled = shuffled.prefetch(64);
    List all = numbers(shuffled, 15);  // broken off in the second pass
    for (const std::int64_t n : numbers(shuffled.take(15))) all.push_back(n);
    for (const std::int64_t n : numbers(shuffled, 10)) all.push_back(n);
    return all;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Shuffle, RefusesBuffersBelowOne) {
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] { range(3).shuffle(0); }),
              ::testing::HasSubstr("buffer_size must be greater than zero"));
  EXPECT_THROW(range(3).shuffle(-1), InvalidArgumentError);
}

TEST(Split, CutsRowsAndOtherElements) {
  for (const Dataset& ds : {range(10), from_tensor_slices(Tensor::from(upto(10)))}) {
    const auto [first, second] = ds.split(0.8);
    EXPECT_EQ(numbers(first), upto(8));
    EXPECT_EQ(numbers(second), (List{8, 9}));
    EXPECT_EQ(first.cardinality(), 8);
    EXPECT_EQ(second.cardinality(), 2);
  }
  EXPECT_EQ(range(100).split(0.29).first.cardinality(), 29) << "100 * 0.29 is below 29";
  EXPECT_EQ(range(3).split(0).first.cardinality(), 0);
  EXPECT_EQ(range(3).split(1).second.cardinality(), 0);
}

TEST(Split, ShufflesBySeedOnce) {
  for (const Dataset& ds : {range(100), from_tensor_slices(Tensor::from(upto(100)))}) {
    const auto [first, second] = ds.split(0.5, 7);
    List all = numbers(first);
    EXPECT_EQ(numbers(first), all);
    EXPECT_NE(sorted(all), upto(50));
    for (const std::int64_t n : numbers(second)) all.push_back(n);
    EXPECT_EQ(sorted(all), upto(100));
    EXPECT_EQ(numbers(ds.split(0.5, 7).first), numbers(first));
    EXPECT_NE(numbers(ds.split(0.5, 8).first), numbers(first));
  }
}

TEST(Split, OfASplitStaysWithinIt) {
  const auto part = from_tensor_slices(Tensor::from(upto(10))).split(0.5).second;
  EXPECT_EQ(numbers(part.split(0.4).first), (List{5, 6}));
  EXPECT_EQ(sorted(numbers(part.split(1, 3).first)), (List{5, 6, 7, 8, 9}));
  EXPECT_EQ(sorted(numbers(
                from_tensor_slices(Tensor::from(upto(10))).split(0.5, 1).first.split(1, 3).first)),
            sorted(numbers(from_tensor_slices(Tensor::from(upto(10))).split(0.5, 1).first)));
}

TEST(Split, NeedsAKnownEndAndAFraction) {
  EXPECT_THROW(range(3).repeat().split(0.5), InvalidArgumentError);
  EXPECT_THROW(range(3).filter([](const Tensor&) { return true; }).split(0.5),
               InvalidArgumentError);
  for (const double fraction : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(range(3).split(fraction), InvalidArgumentError);
  }
}

}  // namespace
}  // namespace tandem::data
