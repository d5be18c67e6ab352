#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/fuse.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/runtime/traced_function.h"

#include "tests/unit/data/data_util.h"
#include "tests/unit/data/draws_util.h"

namespace tandem::data {
namespace {

using Draws = OwnRuntime;

using ::testing::HasSubstr;

constexpr std::int64_t kMany = 60;

TEST_F(Draws, AreTheSameForEveryNumberOfThreads) {
  const std::vector<float> expected = values(range(kMany).map(with_seed));
  EXPECT_GT(different(expected), 55u);
  for (const bool deterministic : {false, true}) {
    runtime_.set_deterministic(deterministic);
    for (const auto& way : ways(with_seed)) {
      for (const std::int64_t calls : {0, 1, 2, 4}) {
        EXPECT_EQ(values(way(range(kMany), {.num_parallel_calls = calls})), expected) << calls;
      }
      EXPECT_EQ(values(way(range(kMany), {.num_parallel_calls = kAutotune})), expected);
    }
  }
}

TEST_F(Draws, OfOpsWithoutSeedsFollowFromTheGlobalSeed) {
  for (const auto& way : ways(without)) {
    std::vector<float> expected;
    for (const std::int64_t calls : {0, 1, 2, 4}) {
      random::set_seed(5);
      const Dataset ds = way(range(kMany), {.num_parallel_calls = calls});
      const std::vector<float> first = values(ds);
      if (expected.empty()) expected = first;
      EXPECT_EQ(first, expected) << calls;
      EXPECT_NE(values(ds), expected);
      EXPECT_GT(different(first), 110u);
    }
    random::set_seed(6);
    EXPECT_NE(values(way(range(kMany), {})), expected);
  }
}

TEST_F(Draws, DoNotDependOnWhetherAFunctionIsTraced) {
  const auto fn = [](Tensor x) {
    Tensor sum = random::uniform({2}) * 8.f + random::uniform({2});
    for (int i = 0; i < 3; ++i) sum = sum * 2.f + random::uniform({2}, {.seed = 3});
    sum = sum + random::normal({2}, {.seed = 3}) + random::truncated_normal({2});
    sum = sum + random::gamma({2}, Tensor(2.f)) + random::poisson({2}, Tensor(3.f));
    sum = sum + cast(random::shuffle(Tensor{1, 2}), float32);
    return sum + cast(random::uniform({2}, {.maxval = 9, .dtype = int64}) + x, float32);
  };
  const auto run = [&](bool traced, std::int64_t calls) {
    random::set_seed(5);
    return values(range(kMany).map(fn, {.num_parallel_calls = calls, .traced = traced}));
  };
  const std::vector<float> expected = run(true, 0);
  EXPECT_GT(different(expected), 110u);
  EXPECT_EQ(run(false, 0), expected);
  EXPECT_EQ(run(true, 4), expected);
  EXPECT_EQ(run(false, 4), expected);
}

TEST_F(Draws, OfOneFunctionAreDifferent) {
  const auto fn = [](Tensor) {
    const auto [i, drawn] = while_loop(
        [](const std::pair<Tensor, Tensor>& state) { return state.first < 4; },
        [](const std::pair<Tensor, Tensor>& state) {
          const Tensor kept = slice(state.second, {1}, {3});
          return std::pair(state.first + 1, concat({kept, random::uniform({1}, {.seed = 3})}, 0));
        },
        std::pair(Tensor(0), zeros({4})));
    return concat({drawn, random::uniform({2}, {.seed = 4}), random::uniform({2}, {.seed = 4}),
                   random::uniform({3}), random::uniform({3})},
                  0);
  };
  for (const bool traced : {true, false}) {
    const auto run = [&](std::int64_t calls) {
      random::set_seed(5);
      return values(range(50).map(fn, {.num_parallel_calls = calls, .traced = traced}));
    };
    const std::vector<float> expected = run(0);
    EXPECT_GT(different(expected), 50u * 14 - 5) << traced;
    EXPECT_EQ(run(3), expected);
  }
}

TEST_F(Draws, OfAllElementsAreDifferentAndUniform) {
  for (const std::optional<std::int64_t> seed : {std::optional<std::int64_t>(3), {}}) {
    const std::vector<float> all =
        values(range(1000).map([seed](Tensor) { return random::uniform({8}, {.seed = seed}); },
                               {.num_parallel_calls = 2}));
    ASSERT_EQ(all.size(), 8000u);
    EXPECT_GT(different(all), 7985u);  // of 2^23; by chance some 4 meet
    double sum = 0, squares = 0, neighbours = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      sum += all[i];
      squares += all[i] * all[i];
      neighbours += (all[i] - 0.5) * (all[(i + 8) % all.size()] - 0.5);
    }
    EXPECT_NEAR(sum / 8000, 0.5, 0.016);  // five standard deviations
    EXPECT_NEAR(squares / 8000, 1.0 / 3, 0.017);
    EXPECT_NEAR(neighbours / 8000, 0, 0.005);
  }
}

TEST_F(Draws, DoNotDependOnFusion) {
  const auto noisy = [](Tensor x) { return cast(x, float32) + random::uniform({}); };
  const auto plain = [](Tensor x) { return cumsum(fill({2}, x)); };
  const auto lucky = [](Tensor) { return random::uniform({}) > 0.5f; };
  const auto high = [](Tensor x) { return reduce_sum(x) > 20.f; };
  const std::vector<std::pair<std::string, std::function<Dataset(std::int64_t)>>> all = {
      {"Map+Map", [&](std::int64_t n) { return range(kMany).map(noisy, {n}).map(plain, {n}); }},
      {"Map+Map",
       [&](std::int64_t n) {
         return range(kMany).map([](Tensor x) { return cast(x, float32); }, {n}).map(noisy, {n});
       }},
      {"Map", [&](std::int64_t n) { return range(kMany).map(noisy, {n}).map(noisy, {n}); }},
      {"Map+Batch", [&](std::int64_t n) { return range(kMany).map(noisy, {n}).batch(4); }},
      {"Map+Batch",
       [&](std::int64_t n) { return range(kMany).map(noisy, {n}).map(plain, {n}).batch(4); }},
      {"Filter+Map", [&](std::int64_t) { return range(kMany).filter(lucky).map(noisy); }},
      {"Filter", [&](std::int64_t n) { return range(kMany).map(noisy, {n}).filter(lucky); }},
      {"Filter", [&](std::int64_t n) { return range(kMany).map(noisy, {n}).filter(high); }}};
  for (const auto& [name, make] : all) {
    std::vector<std::string> expected;
    for (const std::int64_t calls : {0, 2}) {
      EXPECT_THAT(stages(make(calls)), HasSubstr(name));
      for (const bool fused : {true, false}) {
        random::set_seed(5);
        const Dataset ds = fused ? make(calls) : unfused(make(calls));
        std::vector<std::string> both = events(ds);
        const std::vector<std::string> second = events(ds);
        EXPECT_NE(both, second);
        both.insert(both.end(), second.begin(), second.end());
        if (expected.empty()) expected = both;
        EXPECT_EQ(both, expected) << name << " " << calls << " " << fused;
      }
    }
  }
}

TEST_F(Draws, AreNewInEachPass) {
  for (const auto fn : {with_seed, without}) {
    random::set_seed(5);
    const Dataset ds = range(20).map(fn, {.num_parallel_calls = 2});
    const std::vector<float> first = values(ds), second = values(ds);
    const std::vector<float> more = values(ds.repeat(3));
    std::vector<float> all = first;
    all.insert(all.end(), second.begin(), second.end());
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_GE(different(all), all.size() - 2);
    random::set_seed(5);
    const Dataset again = range(20).map(fn);
    EXPECT_EQ(values(again), first);
    EXPECT_EQ(values(again), second);
    EXPECT_EQ(values(again.repeat(3)), more);
  }
}

TEST_F(Draws, AreTheSameWhereSizesTakeTooManyPlans) {
  const auto fn = [](Tensor n) {
    const Tensor x = cast(fill(reshape(n, {1}), n), float32);
    return reduce_sum(x * random::uniform(shape(x), {.seed = 3}) + random::uniform({}));
  };
  const auto run = [&](std::int64_t calls) {
    random::set_seed(5);
    return values(range(1, 70).map(fn, {.num_parallel_calls = calls, .traced = true}));
  };
  const std::vector<float> expected = run(0);
  EXPECT_EQ(run(4), expected);
  EXPECT_EQ(run(3), expected);
}

TEST_F(Draws, OfTracedFunctionsInAFunction) {
  const auto noise = function([](Tensor x) { return x + random::uniform({}); });
  const auto fn = [noise](Tensor x) {
    const Tensor y = cast(x, float32) * 0.f;
    return stack({noise(y), noise(y), random::uniform({})});
  };
  for (const bool traced : {true, false}) {
    const Dataset ds = range(30).map(fn, {.num_parallel_calls = 2, .traced = traced});
    EXPECT_GE(different(values(ds)), 88u);
    expect_resumes([=] { return range(8).map(fn, {.num_parallel_calls = 2, .traced = traced}); });
  }
}

TEST_F(Draws, LeaveThoseOutsideAlone) {
  random::set_seed(5);
  const float first = random::uniform({}, {.seed = 3}).item<float>();
  const float second = random::uniform({}, {.seed = 3}).item<float>();
  random::set_seed(5);
  EXPECT_EQ(random::uniform({}, {.seed = 3}).item<float>(), first);
  values(range(5).map(with_seed));
  EXPECT_EQ(random::uniform({}, {.seed = 3}).item<float>(), second);
}

}  // namespace
}  // namespace tandem::data
