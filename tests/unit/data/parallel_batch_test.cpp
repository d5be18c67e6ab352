#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::HasSubstr;

std::vector<Dataset> inputs() {
  return {range(0), range(10), range(12),
          from_tensor_slices(Tensor::from(upto(11))).shuffle(5, {.seed = 2}),
          range(9).map([](Tensor x) { return std::pair(plus(x, 1), Tensor("s")); })};
}

TEST(ParallelBatch, EqualsTheSerialForm) {
  for (const bool drop : {false, true}) {
    for (const std::int64_t calls : {std::int64_t{1}, std::int64_t{3}, kAutotune}) {
      std::size_t number = 0;
      for (const Dataset& input : inputs()) {
        const Dataset serial = inputs()[number++].batch(4, {.drop_remainder = drop});
        const Dataset parallel =
            input.batch(4, {.drop_remainder = drop, .num_parallel_calls = calls});
        EXPECT_EQ(parallel.element_spec(), serial.element_spec());
        EXPECT_EQ(parallel.cardinality(), serial.cardinality());
        EXPECT_EQ(text(parallel), text(serial));
      }
    }
  }
}

TEST(ParallelBatch, AnyOrderHasAllBatches) {
  const Dataset ds = range(40).batch(4, {.num_parallel_calls = 3, .deterministic = false});
  std::vector<std::int64_t> all = numbers(ds.unbatch());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, upto(40));
}

TEST(ParallelBatch, ErrorsAreTheBatchs) {
  for (const std::int64_t calls : {0, 2}) {
    const BatchOptions options{.num_parallel_calls = calls};
    const Dataset ds = range(9)
                           .map([](Tensor x) {
                             if (x.item<std::int64_t>() == 4) throw DataLossError("four");
                             return x;
                           })
                           .batch(3, options);
    auto it = ds.iterator();
    EXPECT_EQ(it.next()[0].dim(0), 3);
    EXPECT_THAT(message_of_thrown<DataLossError>([&] { it.next(); }), HasSubstr("element 4"));
    EXPECT_EQ(it.next()[0].dim(0), 3);
    Element end;
    EXPECT_FALSE(it.next(end));
    const Dataset unlike = range(6)
                               .map([](Tensor x) {
                                 const auto n = x.item<std::int64_t>();
                                 return Tensor::from(upto(n == 4 ? 3 : 2));
                               })
                               .batch(3, options);
    EXPECT_THAT(message_of_thrown<InvalidArgumentError>([&] { text(unlike); }),
                HasSubstr("Cannot batch tensors with different shapes in component 0"));
  }
}

TEST(ParallelBatch, IsSavedAndRestored) {
  const auto make = [] {
    return range(20).shuffle(7, {.seed = 4}).batch(3, {.num_parallel_calls = 2});
  };
  for (std::size_t stop = 0; stop < 7; ++stop) {
    const Dataset original = make(), other = make();
    auto it = original.iterator();
    for (std::size_t i = 0; i < stop; ++i) it.next();
    const std::string state = it.save();
    auto restored = other.iterator();
    restored.restore(state);
    Element a, b;
    while (it.next(a)) {
      ASSERT_TRUE(restored.next(b));
      EXPECT_EQ(a[0].to_string(), b[0].to_string());
    }
    EXPECT_FALSE(restored.next(b));
  }
}

TEST(ParallelBatch, ThreadsEndWithTheIterator) {
  const std::size_t before = threads_at_rest();
  {
    auto it = range(1000000).batch(2, {.num_parallel_calls = 4}).iterator();
    it.next();
  }
  EXPECT_EQ(threads_at_rest(), before);
  EXPECT_THROW(range(3).batch(2, {.num_parallel_calls = -2}), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem::data
