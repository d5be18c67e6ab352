// Functions that give no tensor where one is wanted, in stages that run as one and such that do
// not.
#include <atomic>
#include <utility>

#include <gmock/gmock.h>

#include "tandem/data/fuse.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::int64_t kMany = 40;

std::atomic<bool> forgets{false};

// Whether traced or called. What is called it returns from the 25th set of sizes on.
Tensor sum_or_nothing(Tensor x) { return forgets ? Tensor() : reduce_sum(x); }
Tensor twice(Tensor x) { return x * std::int64_t{2}; }

// Vectors of 1, 2, 3… elements.
Dataset growing() {
  return from_generator(
      [] {
        return [n = std::int64_t{0}](Element& out) mutable {
          ++n;
          out.assign(1, fill({n}, Tensor(n)));
          return n <= kMany;
        };
      },
      {{int64, PartialShape({PartialShape::kUnknown})}});
}

// Traces its functions, and says what it gives once they forget to return something.
void expect_error(const Dataset& dataset, const std::string& runs_as, const std::string& where) {
  EXPECT_THAT(stages(dataset), HasSubstr(runs_as));
  for (const Dataset& either : {dataset, unfused(dataset)}) either.iterator().next();
  forgets = true;
  EXPECT_THAT(events(dataset), Contains(AllOf(HasSubstr("undefined tensor"), HasSubstr(where))));
  EXPECT_EQ(events(dataset), events(unfused(dataset)));
  forgets = false;
}

TEST(Undefined, IsReportedOfTheMapAndElement) {
  const std::string where = "in map, element 24";
  const auto positive = [](Tensor x) { return x > std::int64_t{0}; };
  for (const std::int64_t calls : {0, 1}) {  // sizes come in their order
    const MapOptions options{.num_parallel_calls = calls};
    const std::string map = calls == 0 ? "Map" : "ParallelMap";
    const Dataset sums = growing().map(sum_or_nothing, options);
    expect_error(sums, map, where);
    expect_error(sums.map(twice, options), map + "+Map", where);
    expect_error(growing().map(twice, options).map(sum_or_nothing, options), map + "+Map", where);
    expect_error(sums.filter(positive), map + "+Filter", where);
    expect_error(sums.batch(4), map + "+Batch", where);
    expect_error(sums.map(twice, options).batch(4), map + "+Batch", where);
  }
  // Functions that are called for every element.
  std::int64_t seven = 7;  // not const: a constant would not be held
  const Dataset holes = range(kMany).map(
      [seven](Tensor x) { return std::pair(x, x.item<std::int64_t>() == seven ? Tensor() : x); });
  expect_error(holes, "Map", "(component 1).\n\tin map, element 7");
  expect_error(
      range(kMany)
          .filter([](const Tensor& x) { return x.item<std::int64_t>() % 2 == 1; })
          .map([seven](Tensor x) { return x.item<std::int64_t>() == seven ? Tensor() : x; }),
      "Filter+Map", "in map, element 3");
}

TEST(Undefined, IsReportedOfOtherStages) {
  const auto forgetful = [](Tensor state, Tensor x) {
    return std::pair(state, x.item<std::int64_t>() == 2 ? Tensor() : x);
  };
  EXPECT_THAT(events(range(4).scan({Tensor(std::int64_t{0})}, forgetful)),
              Contains(AllOf(HasSubstr("undefined tensor"), HasSubstr("in scan, element 2"))));
  const auto forgets_state = [](Tensor state, Tensor x) {
    return std::pair(x.item<std::int64_t>() == 2 ? Tensor() : state, x);
  };
  EXPECT_THAT(events(range(4).scan({Tensor(std::int64_t{0})}, forgets_state)),
              Contains(AllOf(HasSubstr("undefined tensor"), HasSubstr("in scan, element 2"))));
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] {
                range(4).reduce(Tensor(std::int64_t{0}), [](Tensor, Tensor) { return Tensor(); });
              }),
              AllOf(HasSubstr("undefined tensor"), HasSubstr("in reduce, element 0")));
  EXPECT_THAT(events(range(4).filter([](Tensor) { return Tensor(); })),
              Contains(AllOf(HasSubstr("undefined tensor"), HasSubstr("in filter, element 0"))));
}

}  // namespace
}  // namespace tandem::data
