#include <atomic>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>

#include "tandem/data/file_datasets.h"
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

std::atomic<int> calls{0};
Tensor counted(Tensor x) {
  ++calls;
  return x + std::int64_t{1};
}

TEST(TracedMap, CallsAFunctionThatHoldsNothingOnce) {
  calls = 0;
  const Dataset ds = range(kMany).map(counted);
  EXPECT_EQ(numbers(ds).back(), kMany);
  EXPECT_EQ(numbers(ds).front(), 1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(numbers(range(kMany).map([](Tensor x) { return counted(x); })).size(), 40u);
  EXPECT_EQ(calls, 2);
}

TEST(TracedMap, CallsOthersForEachElement) {
  int own = 0;
  numbers(range(kMany).map([&own](Tensor x) {
    ++own;
    return x;
  }));
  EXPECT_EQ(own, kMany);
  calls = 0;
  numbers(range(kMany).map(counted, {.traced = false}));
  EXPECT_EQ(calls, kMany);
  calls = 0;
  numbers(range(3).map(counted));
  EXPECT_EQ(calls, 3) << "few elements are not worth a trace";
}

TEST(TracedMap, TracesWhatHoldsSomethingIfAsked) {
  int own = 0;
  const std::int64_t more = 5;
  const Dataset ds = range(kMany).map(
      [&own, more](Tensor x) {
        ++own;
        return x + more;
      },
      {.traced = true});
  EXPECT_EQ(numbers(ds).front(), 5);
  EXPECT_EQ(numbers(ds).back(), kMany + 4);
  EXPECT_EQ(own, 1);
  EXPECT_EQ(to_string(ds.element_spec()), "(int64[])");
}

TEST(TracedMap, CallsWhatCannotBeTraced) {
  const auto reads = [](Tensor x) { return Tensor(x.item<std::int64_t>() * 2); };
  EXPECT_EQ(numbers(range(kMany).map(reads)).back(), 2 * kMany - 2);
  EXPECT_THROW(range(kMany).map(reads, {.traced = true}).iterator(), FailedPreconditionError);
}

TEST(TracedMap, DoesNotGoBySizesItDoesNotKnow) {
  const Dataset ds = range(100).batch(3).map([](Tensor x) { return Tensor(x.dim(0)) * x; });
  const std::vector<std::int64_t> last =
      Dataset(ds).skip(33).iterator().next()[0].to_vector<std::int64_t>();
  EXPECT_EQ(last, std::vector<std::int64_t>{99});
  EXPECT_EQ(Dataset(ds).iterator().next()[0].to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{0, 3, 6}));
}

TEST(TracedMap, TakesFunctionsWithSeveralArguments) {
  const auto sum = function([](Tensor x, Tensor y) { return x + y; });
  const Dataset ds = zip({range(kMany), range(kMany)}).map(sum);
  EXPECT_EQ(numbers(ds).back(), 2 * kMany - 2);
}

TEST(TracedMap, NamesTheElementThatFails) {
  const Dataset ds =
      range(kMany).map([](Tensor x) { return floordiv(std::int64_t{10}, x - std::int64_t{2}); });
  Iterator it = ds.iterator();
  EXPECT_EQ(it.next()[0].item<std::int64_t>(), -5);
  it.next();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { it.next(); }),
              HasSubstr("in map, element 2"));
  EXPECT_EQ(it.next()[0].item<std::int64_t>(), 10);
}

TEST(TracedMap, ServesManySizes) {
  const Dataset ds =
      range(100).map([](Tensor n) { return fill(reshape(n, {1}), n); }).map([](Tensor x) {
        return reduce_sum(x);
      });
  const std::vector<std::int64_t> sums = numbers(ds);
  ASSERT_EQ(sums.size(), 100u);
  for (std::int64_t n = 0; n < 100; ++n) EXPECT_EQ(sums[static_cast<std::size_t>(n)], n * n);
}

Tensor counted_condition(Tensor x) {
  ++calls;
  const Tensor left = floormod(x * std::int64_t{7} + std::int64_t{3}, std::int64_t{5});
  return left < std::int64_t{2};
}

TEST(TracedFilter, CallsAConditionThatHoldsNothingOnce) {
  calls = 0;
  const std::vector<std::int64_t> kept = numbers(range(kMany).filter(counted_condition));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(kept, numbers(range(kMany).filter(
                      [](const Tensor& x) { return (x.item<std::int64_t>() * 7 + 3) % 5 < 2; })));
  EXPECT_EQ(numbers(from_tensor_slices(Tensor::from(upto(kMany))).filter(counted_condition)), kept);
}

TEST(TracedFilter, NamesTheElementThatFails) {
  Iterator it = range(kMany)
                    .filter([](Tensor x) {
                      return floordiv(std::int64_t{10}, x - std::int64_t{2}) < std::int64_t{100};
                    })
                    .iterator();
  it.next();
  it.next();
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { it.next(); }),
              HasSubstr("in filter, element 2"));
  EXPECT_EQ(it.next()[0].item<std::int64_t>(), 3);
}

// ---- Stages that run as one. ----

Dataset unfused(const Dataset& dataset) { return dataset.with_options({.fusion = false}); }

void expect_equal(const Dataset& dataset) {
  EXPECT_EQ(text(dataset), text(unfused(dataset)));
  EXPECT_EQ(dataset.cardinality(), unfused(dataset).cardinality());
}

Tensor twice(Tensor x) { return x * std::int64_t{2} + std::int64_t{1}; }
Tensor running(Tensor x) { return cumsum(fill({3}, x)); }  // no elementwise op

Tensor fails_at_nine(Tensor x) {
  return cumsum(fill({2}, floordiv(std::int64_t{90}, x - std::int64_t{9})));
}

TEST(Fusion, TellsTheStages) {
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

TEST(Fusion, DrawsRandomNumbersAnewForEachElementAndEpoch) {
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
    const auto count = std::make_shared<ErrorCount>();
    EXPECT_EQ(text(ds.ignore_errors({.count = count})), text(unfused(ds).ignore_errors()));
    EXPECT_EQ(count->count(), 1);
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
  const std::size_t before = thread_count();
  for (int elements = 0; elements < 3; ++elements) {
    Iterator it = range(1000).repeat().map(running, {.num_parallel_calls = 3}).batch(8).iterator();
    for (int i = 0; i < elements; ++i) it.next();
  }
  EXPECT_EQ(thread_count(), before);
}

}  // namespace
}  // namespace tandem::data
