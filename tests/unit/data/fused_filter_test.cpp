// Filters that run with the map before or after them.
#include <algorithm>
#include <stdexcept>

#include <gmock/gmock.h>

#include "tandem/data/fuse.h"
#include "tandem/data/pipeline_stats.h"
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

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::int64_t kMany = 40;

Dataset rows(std::int64_t count) { return from_tensor_slices(Tensor::from(upto(count))); }

Dataset shuffled(std::int64_t buffer) {
  return rows(kMany).shuffle(buffer, {.seed = 2, .reshuffle_each_iteration = false});
}

Tensor line(Tensor x) { return x * std::int64_t{3} + std::int64_t{1}; }
Tensor running(Tensor x) { return cumsum(fill({2}, x)); }
Tensor even(Tensor x) { return floormod(x, std::int64_t{2}) == std::int64_t{0}; }
Tensor sum_is_odd(Tensor x) { return floormod(reduce_sum(x), std::int64_t{2}) != std::int64_t{0}; }
Tensor ninety_by(Tensor x) { return floordiv(std::int64_t{90}, x - std::int64_t{9}); }
Tensor condition_fails_at_31(Tensor x) {
  return floordiv(std::int64_t{7}, x - std::int64_t{31}) < std::int64_t{0};
}
Tensor condition_fails_at_9(Tensor x) { return ninety_by(x) < std::int64_t{5}; }

TEST(MapAndFilter, RunAsOne) {
  EXPECT_EQ(stages(range(kMany).map(line).filter(even)), "Map+Filter\n  Range\n");
  EXPECT_EQ(stages(range(kMany).map(line).map(running).filter(sum_is_odd)),
            "Map+Map+Filter\n  Range\n");
  EXPECT_EQ(stages(range(kMany).map(line, {.num_parallel_calls = 2}).filter(even)),
            "ParallelMap+Filter\n  Range\n");
  EXPECT_EQ(stages(range(kMany).map(line).filter(even).batch(4)),
            "Batch\n  Map+Filter\n    Range\n");
  EXPECT_EQ(stages(range(kMany).filter(even).map(line).filter(even)),
            "Map+Filter\n  Filter\n    Range\n");
  EXPECT_EQ(stages(unfused(range(kMany).map(line).filter(even))),
            "Options\n  Filter\n    Map\n      Range\n");
}

TEST(MapAndFilter, StayApartWhereOneIsCalledOrHasEffects) {
  const std::string apart = "Filter\n  Map\n    Range\n";
  EXPECT_EQ(stages(range(kMany).map(line, {.traced = false}).filter(even)), apart);
  EXPECT_EQ(
      stages(range(kMany).map(line).filter([](Tensor x) { return x.item<std::int64_t>() > 5; })),
      apart);
  int calls = 0;
  EXPECT_EQ(stages(range(kMany).map(line).filter([&calls](Tensor x) {
              ++calls;
              return even(x);
            })),
            apart);
  EXPECT_EQ(stages(range(kMany)
                       .map([](Tensor x) { return std::pair(x, random::uniform({})); })
                       .filter([](Tensor x, Tensor) { return even(x); })),
            apart);
}

TEST(MapAndFilter, GiveEqualElements) {
  for (const std::int64_t calls : {0, 1, 3}) {
    const MapOptions options{.num_parallel_calls = calls};
    expect_fuses(range(kMany).map(line, options).filter(even));
    expect_fuses(rows(kMany).map(line, options).filter(even).batch(3));
    expect_fuses(range(kMany).map(line, options).map(running, options).filter(sum_is_odd));
    expect_fuses(shuffled(7).map(running, options).filter(sum_is_odd), 8);
    expect_fuses(range(kMany)
                     .map([](Tensor x) { return std::pair(strings::as_string(x), x); }, options)
                     .filter([](Tensor, Tensor x) { return even(x); }));
    expect_fuses(range(kMany).map([](Tensor x) { return x; }, options).filter(even));
    expect_fuses(range(0).map(line, options).filter(even));
    expect_fuses(
        range(kMany).map(line, options).filter([](Tensor x) { return x < std::int64_t{0}; }));
    expect_fuses(range(3).repeat().map(line, options).filter(even).take(50), 5);
  }
}

TEST(MapAndFilter, ServeManySizes) {
  // More than a program has plans for.
  expect_fuses(range(1, 60)
                   .map([](Tensor n) { return fill(reshape(n, {1}), n); }, {.traced = true})
                   .filter(sum_is_odd),
               0);
  EXPECT_THAT(
      stages(range(60).map([](Tensor n) { return fill(reshape(n, {1}), n); }).filter(sum_is_odd)),
      HasSubstr("Map+Filter"));
}

TEST(MapAndFilter, ErrorsAreThoseOfEach) {
  for (const std::int64_t calls : {0, 1, 3}) {
    const MapOptions options{.num_parallel_calls = calls};
    const Dataset in_map = range(kMany).map(ninety_by, options).filter(even);
    EXPECT_THAT(events(in_map), Contains(HasSubstr("in map, element 9")));
    expect_fuses(in_map);
    const Dataset in_filter = range(kMany).map(line, options).filter(condition_fails_at_31);
    EXPECT_THAT(stages(in_filter), HasSubstr("Map+Filter"));
    EXPECT_THAT(events(in_filter), Contains(HasSubstr("in filter, element 10")));
    expect_fuses(in_filter);
    // The filter does not see what the map failed at.
    const Dataset both = range(kMany).map(ninety_by, options).filter([](Tensor x) {
      return floordiv(std::int64_t{7}, x - std::int64_t{9}) <= std::int64_t{0};
    });
    EXPECT_THAT(events(both), Contains(HasSubstr("in filter, element 18")));
    expect_fuses(both);
    expect_fuses(both.batch(4));
    EXPECT_EQ(events(both.ignore_errors()), events(unfused(both).ignore_errors()));
  }
}

Dataset breaks_at_five() {
  return from_generator(
      [] {
        return [n = std::int64_t{0}](Element& out) mutable {
          if (n++ == 5) throw std::runtime_error("five");
          out.assign(1, n % 7 == 0 ? Tensor(1.5f) : Tensor(n));
          return n < 30;
        };
      },
      {{int64, PartialShape::scalar()}});
}

TEST(MapAndFilter, ErrorsOfTheInputArePassedOn) {
  for (const std::int64_t calls : {0, 2}) {
    const MapOptions options{.num_parallel_calls = calls};
    for (const Dataset& ds : {breaks_at_five().map(line, options).filter(even),
                              breaks_at_five().map(ninety_by, options).filter(even)}) {
      EXPECT_THAT(stages(ds), HasSubstr("Map+Filter"));
      EXPECT_EQ(events(ds), events(unfused(ds)));
      EXPECT_THAT(events(ds), Contains(HasSubstr("five")));
    }
  }
}

TEST(MapAndFilter, AreTunedAndObserved) {
  const Dataset ds =
      range(200).map(line, {.num_parallel_calls = kAutotune}).filter(even).prefetch(2);
  Iterator it = ds.iterator({.observe = true});
  EXPECT_EQ(events(it), events(unfused(ds)));
  const PipelineStats stats = it.stats();
  ASSERT_EQ(stats.stages.size(), 3u);
  EXPECT_EQ(stats.stages[1].name, "ParallelMap+Filter");
  EXPECT_EQ(stats.stages[1].elements, 100);
  EXPECT_EQ(stats.stages[1].bytes, 800);
  EXPECT_TRUE(stats.stages[1].tuned);
  EXPECT_EQ(stats.stages[2].elements, 200);
}

TEST(MapAndFilter, GiveAllOfThemWithoutAnOrder) {
  const Dataset ds =
      range(500).map(line, {.num_parallel_calls = 3, .deterministic = false}).filter(even);
  std::vector<std::int64_t> fused = numbers(ds), alone = numbers(unfused(ds));
  std::sort(fused.begin(), fused.end());
  std::sort(alone.begin(), alone.end());
  EXPECT_EQ(fused, alone);
}

TEST(MapAndFilter, StopWhileTheirThreadsWork) {
  const std::size_t before = threads_at_rest();
  for (int elements = 0; elements < 3; ++elements) {
    Iterator it = range(1000).repeat().map(line, {.num_parallel_calls = 3}).filter(even).iterator();
    for (int i = 0; i < elements; ++i) it.next();
  }
  EXPECT_EQ(threads_at_rest(), before);
}

TEST(FilterAndMap, RunAsOne) {
  EXPECT_EQ(stages(range(kMany).filter(even).map(line)), "Filter+Map\n  Range\n");
  EXPECT_EQ(stages(range(kMany).filter(even).map(line).map(running)), "Filter+Map+Map\n  Range\n");
  EXPECT_EQ(stages(range(kMany).filter(even).map(line, {.traced = false})),
            "Filter+Map\n  Range\n");
  EXPECT_EQ(stages(range(kMany).filter(even).map(line, {.num_parallel_calls = 2})),
            "ParallelMap\n  Filter\n    Range\n");
  EXPECT_EQ(stages(range(kMany).map(line).filter(even).map(line)),
            "Map\n  Map+Filter\n    Range\n");
  // Batches are made of maps before.
  EXPECT_EQ(stages(range(kMany).filter(even).map(running).batch(4)),
            "Map+Batch\n  Filter\n    Range\n");
  EXPECT_EQ(stages(range(kMany).filter(even).map(line).batch(4)),
            "Map\n  Batch\n    Filter\n      Range\n");
  EXPECT_EQ(stages(unfused(range(kMany).filter(even).map(line))),
            "Options\n  Map\n    Filter\n      Range\n");
}

TEST(FilterAndMap, GiveEqualElements) {
  for (const Dataset& source : {range(kMany), rows(kMany), shuffled(5)}) {
    expect_fuses(source.filter(even).map(line));
    expect_fuses(source.filter(even).map(line).map(running));
    expect_fuses(source.filter(even).map(line).batch(3));
    expect_fuses(source.map(line).filter(even).map(running).filter(sum_is_odd));
    expect_fuses(source.filter(even).filter(sum_is_odd).map(line));
    expect_fuses(
        source.filter([](Tensor x) { return x.item<std::int64_t>() > 3; }).map([](Tensor x) {
          return plus(x, 5);
        }));
    expect_fuses(source.filter(even).map(running).repeat(2), 50);
  }
  expect_fuses(range(0).filter(even).map(line));
}

TEST(FilterAndMap, ErrorsAreThoseOfEach) {
  for (const Dataset& source : {range(kMany), rows(kMany)}) {
    const Dataset in_filter = source.filter(condition_fails_at_9).map(line);
    EXPECT_THAT(events(in_filter), Contains(HasSubstr("in filter, element 9")));
    expect_fuses(in_filter);
    // The map's fifth.
    const Dataset in_map =
        source.filter([](Tensor x) { return x > std::int64_t{4}; }).map(ninety_by);
    EXPECT_THAT(events(in_map), Contains(HasSubstr("in map, element 4")));
    expect_fuses(in_map);
    EXPECT_EQ(events(in_map.ignore_errors()), events(unfused(in_map).ignore_errors()));
  }
}

TEST(FilterAndMap, AreObserved) {
  const Dataset ds = rows(kMany).filter(even).map(line);
  Iterator it = ds.iterator({.observe = true});
  events(it);
  const PipelineStats stats = it.stats();
  ASSERT_EQ(stats.stages.size(), 2u);
  EXPECT_EQ(stats.stages[0].name, "Filter+Map");
  EXPECT_EQ(stats.stages[0].elements, kMany / 2);
  EXPECT_EQ(stats.stages[1].elements, kMany);
}

}  // namespace
}  // namespace tandem::data
