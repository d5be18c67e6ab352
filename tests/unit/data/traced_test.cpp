#include <atomic>

#include <gmock/gmock.h>

#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"

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
  std::int64_t more = 5;  // not const: a constant would not be held
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

}  // namespace
}  // namespace tandem::data
