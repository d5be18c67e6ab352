#include <set>
#include <stdexcept>

#include <gmock/gmock.h>

#include "tandem/data/fuse.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/string_ops.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMany = 40;

void expect_equal(const Dataset& dataset) {
  EXPECT_EQ(text(dataset), text(unfused(dataset)));
  EXPECT_EQ(dataset.cardinality(), unfused(dataset).cardinality());
}

Tensor twice(Tensor x) { return x * std::int64_t{2} + std::int64_t{1}; }
Tensor running(Tensor x) { return cumsum(fill({3}, x)); }  // no elementwise op

Tensor fails_at_nine(Tensor x) {
  return cumsum(fill({2}, floordiv(std::int64_t{90}, x - std::int64_t{9})));
}

TEST(Fusion, ReportsTheStages) {
  EXPECT_EQ(stages(range(kMany).map(twice).batch(4)), "Map\n  Batch\n    Range\n");
  EXPECT_EQ(stages(range(kMany).map(running).batch(4).prefetch(1)),
            "Prefetch\n  Map+Batch\n    Range\n");
  EXPECT_EQ(stages(range(kMany).map(running, {.num_parallel_calls = 2}).batch(4)),
            "ParallelMap+Batch\n  Group\n    Range\n");
  EXPECT_EQ(stages(unfused(range(kMany).map(twice).batch(4))),
            "Options\n  Batch\n    Map\n      Range\n");
  EXPECT_EQ(stages(range(kMany).map(twice, {.traced = false}).batch(4)),
            "Batch\n  Map\n    Range\n");
}

TEST(Fusion, GivesEqualBatches) {
  for (const std::int64_t calls : {0, 1, 3}) {
    for (const bool drop : {false, true}) {
      for (const std::int64_t size : {1, 4, 7, 64}) {
        const MapOptions options{.num_parallel_calls = calls};
        expect_equal(range(kMany).map(twice, options).batch(size, {.drop_remainder = drop}));
        expect_equal(range(kMany).map(running, options).batch(size, {.drop_remainder = drop}));
        expect_equal(range(kMany)
                         .map([](Tensor x) { return std::pair(strings::as_string(x), x); }, options)
                         .batch(size, {.drop_remainder = drop}));
      }
    }
  }
  expect_equal(range(0).map(running).batch(3));
  expect_equal(from_tensor_slices(Tensor(Array::zeros(uint8, {20, 2, 3})))
                   .map([](Tensor x) { return cast(x, float32) / 255.0f; })
                   .batch(6));
}

TEST(Fusion, MakesOneOfSuccessiveMaps) {
  const Dataset three = range(kMany).map(twice).map(running).map(
      [](Tensor x) { return std::pair(x, reduce_sum(x)); });
  EXPECT_EQ(stages(three), "Map+Map+Map\n  Range\n");
  EXPECT_EQ(stages(three.batch(4)), "Map+Batch\n  Range\n");
  EXPECT_EQ(stages(range(kMany).map(twice).map(twice).batch(4)), "Map\n  Batch\n    Range\n");
  EXPECT_EQ(stages(range(kMany).map(twice).map(twice, {.num_parallel_calls = 2})),
            "ParallelMap\n  Map\n    Range\n");
  expect_equal(three);
  expect_equal(three.batch(7));
  expect_equal(range(kMany).map(twice).map(twice).batch(7));
  expect_equal(
      range(kMany).map(twice, {.num_parallel_calls = 3}).map(running, {.num_parallel_calls = 3}));
  Iterator it = range(kMany).map(twice).map(fails_at_nine).iterator();
  for (int i = 0; i < 4; ++i) it.next();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { it.next(); }),
              HasSubstr("in map, element 4"));
  it.next();
}

TEST(Fusion, DrawsRandomNumbersAgainForEachElementAndEpoch) {
  const Dataset ds = range(kMany)
                         .map([](Tensor x) { return std::pair(x, random::uniform({})); })
                         .map([](Tensor, Tensor r) { return r; });
  EXPECT_EQ(stages(ds), "Map+Map\n  Range\n");
  std::set<float> seen;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Element& e : ds) seen.insert(e[0].item<float>());
  }
  EXPECT_GT(seen.size(), 70u);
}

TEST(Fusion, KeepsMapsOffBatchesThatWouldMeetOtherAxes) {
  // A scalar of each element meets a vector: in a batch they would meet along the wrong axis.
  const Dataset ds = range(21).map([](Tensor x) {
    return x + Tensor{std::int64_t{1}, std::int64_t{2}, std::int64_t{3}};
  });
  EXPECT_THAT(stages(ds.batch(3)), HasSubstr("Map+Batch"));
  expect_equal(ds.batch(3));
}

TEST(Fusion, KeepsMapsOffBatchesThatGiveConstants) {
  const Dataset ds = range(21).map([](Tensor x) { return std::pair(x, Tensor(7)); });
  EXPECT_THAT(stages(ds.batch(3)), HasSubstr("Map+Batch"));
  expect_equal(ds.batch(3));
}

TEST(Fusion, LeavesElementsWhoseSizesDifferAsTheyAre) {
  const Dataset ds = range(1, 40).map([](Tensor n) { return fill(reshape(n, {1}), n); });
  for (const Dataset& batches : {ds.batch(2), unfused(ds.batch(2))}) {
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { batches.iterator().next(); }),
                HasSubstr("First element had shape [1] and element 1 had shape [2]"));
  }
  EXPECT_EQ(events(ds.batch(2)), events(unfused(ds.batch(2))));
}

TEST(Fusion, AnErrorIsThatOfItsBatch) {
  for (const std::int64_t calls : {0, 2}) {
    const Dataset ds = range(kMany).map(fails_at_nine, {.num_parallel_calls = calls}).batch(4);
    for (const Dataset& batches : {ds, unfused(ds)}) {
      Iterator it = batches.iterator();
      it.next();
      it.next();
      EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { it.next(); }),
                  HasSubstr("in map, element 9"));
      EXPECT_EQ(it.next()[0].data<std::int64_t>()[0], 30);
    }
    EXPECT_EQ(events(ds), events(unfused(ds)));
    const auto count = std::make_shared<ErrorCount>();
    EXPECT_EQ(text(ds.ignore_errors({.count = count})), text(unfused(ds).ignore_errors()));
    EXPECT_EQ(count->count(), 1);
  }
}

// Elements that a failed batch passes over count, and so do those that the source failed to give.
TEST(Fusion, NumbersElementsAfterErrors) {
  const auto fails_twice = [](Tensor x) {
    return cumsum(
        fill({2}, floordiv(std::int64_t{90}, (x - std::int64_t{9}) * (x - std::int64_t{21}))));
  };
  for (const std::int64_t calls : {0, 2}) {
    const Dataset by_map = range(kMany).map(fails_twice, {.num_parallel_calls = calls}).batch(4);
    EXPECT_THAT(stages(by_map), HasSubstr("Map+Batch"));
    EXPECT_THAT(events(by_map), Contains(HasSubstr("in map, element 21")));
    EXPECT_EQ(events(by_map), events(unfused(by_map)));
    const Dataset by_source = range(kMany)
                                  .map(
                                      [](Tensor x) {
                                        if (x.item<std::int64_t>() == 2)
                                          throw UnknownError("not this one");
                                        return x;
                                      },
                                      {.traced = false})
                                  .map(fails_twice, {.num_parallel_calls = calls, .traced = true})
                                  .batch(4);
    EXPECT_THAT(events(by_source), Contains(HasSubstr("in map, element 9")));
    EXPECT_EQ(events(by_source), events(unfused(by_source)));
  }
}

TEST(Fusion, AnErrorOfTheInputIsThatOfItsBatch) {
  const auto make = [] {
    return [n = std::int64_t{0}](Element& out) mutable {
      if (n == 5) {
        ++n;
        throw std::runtime_error("five");
      }
      out.assign(1, Tensor(n));
      return n++ < 14;
    };
  };
  const ElementSpec spec{{int64, PartialShape::scalar()}};
  for (const std::int64_t calls : {0, 2}) {
    const Dataset ds =
        from_generator(make, spec).map(running, {.num_parallel_calls = calls}).batch(3);
    EXPECT_EQ(text(ds.ignore_errors()), text(unfused(ds).ignore_errors()));
  }
}

TEST(Fusion, GoesOnWhereItWasSaved) {
  const auto check = [](const Dataset& ds) {
    Iterator it = ds.iterator();
    it.next();
    it.next();
    const std::string state = it.save();
    Iterator other = ds.iterator();
    other.restore(state);
    Element left, right;
    while (it.next(left)) {
      ASSERT_TRUE(other.next(right));
      EXPECT_EQ(left[0].to_vector<std::int64_t>(), right[0].to_vector<std::int64_t>());
    }
    EXPECT_FALSE(other.next(right));
  };
  check(range(kMany).map(twice).batch(4));
  check(range(kMany).map(running).batch(4));
  check(range(kMany).map(running, {.num_parallel_calls = 2}).batch(4));
  check(range(kMany).shuffle(10, {.seed = 3}).map(running).batch(4).repeat(2));
}

TEST(Fusion, StopsWhileItsThreadsWork) {
  const std::size_t before = threads_at_rest();
  for (int elements = 0; elements < 3; ++elements) {
    Iterator it = range(1000).repeat().map(running, {.num_parallel_calls = 3}).batch(8).iterator();
    for (int i = 0; i < elements; ++i) it.next();
  }
  EXPECT_EQ(threads_at_rest(), before);
}

}  // namespace
}  // namespace tandem::data
