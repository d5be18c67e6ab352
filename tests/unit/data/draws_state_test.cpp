#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/dataset_base.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"

#include "tests/unit/data/data_util.h"
#include "tests/unit/data/draws_util.h"

namespace tandem::data {
namespace {

using DrawsState = OwnRuntime;

TEST_F(DrawsState, GoOnWhereAnIterationWasSaved) {
  for (const auto fn : {with_seed, without}) {
    for (const auto& way : ways(fn)) {
      expect_resumes([&] { return way(range(7), {}); });
      expect_resumes([&] { return way(range(7), {.num_parallel_calls = 3}); });
      expect_resumes([&] { return way(range(4), {}).repeat(3); });
      expect_resumes([&] { return way(range(4).repeat(3), {.num_parallel_calls = 2}); });
      expect_resumes([&] { return way(range(4), {.num_parallel_calls = 2}).repeat(2).batch(3); });
      expect_resumes([&] { return way(range(40), {}).batch(4); });
      expect_resumes([&] { return way(range(40), {.num_parallel_calls = 2}).batch(4); });
    }
  }
}

TEST_F(DrawsState, OfConditionsGoOnToo) {
  const auto kept = [](std::int64_t threads) {
    random::set_seed(5);
    return events(range(60)
                      .map([](Tensor x) { return x; }, {.num_parallel_calls = threads})
                      .filter([](Tensor) { return random::uniform({}, {.seed = 3}) > 0.5f; }));
  };
  EXPECT_THAT(kept(0).size(), ::testing::AllOf(::testing::Gt(12u), ::testing::Lt(48u)));
  EXPECT_EQ(kept(3), kept(0));
  const auto lucky = [](Tensor) { return random::uniform({}) > 0.3f; };
  Iterator it = range(40).filter(lucky).iterator();
  events(it, 7);
  const std::string saved = it.save();
  const Dataset other = range(40).filter(lucky);
  Iterator restored = other.iterator();
  restored.restore(saved);
  EXPECT_EQ(events(restored), events(it));
  Iterator mapped = range(40).filter(lucky).map(without).iterator();
  events(mapped, 7);
  const std::string state = mapped.save();
  Iterator other_mapped = range(40).filter(lucky).map(without).iterator();
  other_mapped.restore(state);
  EXPECT_EQ(events(other_mapped), events(mapped));
}

TEST_F(DrawsState, OfScansGoOnToo) {
  const auto walk = [](Tensor at, Tensor) {
    const Tensor next = at + random::normal({}, {.seed = 3}) + random::uniform({});
    return std::pair(next, next);
  };
  expect_resumes([&] { return range(9).scan({Tensor(0.f)}, walk); });
  expect_resumes([&] { return range(3).scan({Tensor(0.f)}, walk).repeat(3); });
  const auto run = [&] {
    random::set_seed(5);
    return values(range(9).scan({Tensor(0.f)}, walk));
  };
  EXPECT_EQ(run(), run());
}

TEST_F(DrawsState, OfNestedDatasetsFollowFromTheirElement) {
  const auto nested = [](Tensor x) {
    const Dataset ds = range(4).map([x](Tensor) { return random::uniform({}); });
    return zip({ds, range(4).shuffle(4).map(with_seed), range(9).shuffle(9)});
  };
  const auto make = [&](std::int64_t calls) {
    return range(10).interleave(nested, {.cycle_length = 3, .num_parallel_calls = calls});
  };
  // Seeds that were drawn by chance.
  Iterator it = make(3).iterator();
  events(it, 11);
  const std::string saved = it.save();
  Iterator restored = make(1).iterator();
  restored.restore(saved);
  EXPECT_EQ(events(restored), events(it));
  const auto run = [&](std::int64_t calls) {
    random::set_seed(5);
    return events(make(calls));
  };
  const std::vector<std::string> expected = run(0);
  EXPECT_EQ(run(2), expected);
  EXPECT_EQ(run(4), expected);
  for (const int component : {0, 1}) {
    const Dataset one = range(10).flat_map(nested).map(
        [component](const Element& e) { return e[static_cast<std::size_t>(component)]; });
    EXPECT_GE(different(values(one)), 39u) << component;
  }
}

// Only a first element shows what elements are like: looking at it changes nothing that follows.
TEST_F(DrawsState, AskingForASpecCountsNoPass) {
  std::int64_t one = 1;  // held: such a function is called
  const std::function<Dataset(const Dataset&)> stages[] = {
      [](const Dataset& d) {
        return d.interleave([](const Tensor& x) { return from_tensors(x); });
      },
      [](const Dataset& d) {
        return d.scan({Tensor(std::int64_t{0})},
                      [](Tensor s, Tensor x) { return std::pair(s, x); });
      },
      [=](const Dataset& d) { return d.map([one](const Tensor& x) { return plus(x, one); }); },
  };
  for (const auto& stage : stages) {
    const auto make = [&] { return stage(range(20).shuffle(20, {.seed = 1})); };
    const Dataset asked = make(), plain = make();
    asked.element_spec();
    asked.base()->reads_files();
    EXPECT_EQ(numbers(asked), numbers(plain));
    EXPECT_EQ(numbers(asked), numbers(plain));
  }
}

}  // namespace
}  // namespace tandem::data
