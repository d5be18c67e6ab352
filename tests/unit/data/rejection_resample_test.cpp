// Elements left out so that classes come as often as wanted.
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tandem/data/dataset.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"

#include "tests/unit/data/data_util.h"

namespace tandem::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kMany = 4000;

// One of four is of class 1, three are of class 0.
Tensor fourths(Tensor x) { return cast(equal(x % std::int64_t{4}, std::int64_t{0}), int32); }

// The share of class 1, whose elements must be of it, and how many there are.
std::pair<double, std::int64_t> share_of_ones(const Dataset& dataset) {
  std::int64_t ones = 0, all = 0;
  for (const Element& e : dataset) {
    EXPECT_EQ(e.size(), 2u);
    EXPECT_EQ(e[0].item<std::int32_t>(), e[1].item<std::int64_t>() % 4 == 0 ? 1 : 0);
    ones += e[0].item<std::int32_t>();
    ++all;
  }
  return {static_cast<double>(ones) / static_cast<double>(all), all};
}

TEST(RejectionResample, ReachesTheTarget) {
  struct Case {
    std::vector<float> target, initial;
  };
  for (const Case& c : {Case{{0.5f, 0.5f}, {0.75f, 0.25f}},
                        {{0.5f, 0.5f}, {}},
                        {{0.9f, 0.1f}, {0.75f, 0.25f}},
                        {{1, 0}, {0.75f, 0.25f}}}) {
    const auto [share, count] = share_of_ones(
        range(kMany).rejection_resample(fourths, c.target, {.initial_dist = c.initial, .seed = 5}));
    EXPECT_NEAR(share, c.target[1], 0.04);
    EXPECT_GT(count, 1000);
  }
}

TEST(RejectionResample, PassesWhatIsAsWanted) {
  const Dataset ds =
      range(20).rejection_resample(fourths, {0.75f, 0.25f}, {.initial_dist = {0.75f, 0.25f}});
  EXPECT_EQ(share_of_ones(ds), (std::pair<double, std::int64_t>(0.25, 20)));
}

TEST(RejectionResample, DrawsTheSameForASeed) {
  const auto drawn = [](std::int64_t seed) {
    return text(range(200).rejection_resample(fourths, {0.5f, 0.5f},
                                              {.initial_dist = {0.75f, 0.25f}, .seed = seed}));
  };
  EXPECT_EQ(drawn(3), drawn(3));
  EXPECT_NE(drawn(3), drawn(4));
}

TEST(RejectionResample, RefusesWhatIsNoDistribution) {
  const Dataset ds = range(9);
  const auto failing = [&](std::vector<float> target, std::vector<float> initial) {
    return message_of_thrown<InvalidArgumentError>(
        [&] { ds.rejection_resample(fourths, target, {.initial_dist = initial}); });
  };
  EXPECT_THAT(failing({}, {}), HasSubstr("no classes"));
  EXPECT_THAT(failing({0.5f, -0.5f}, {}), HasSubstr("target_dist must be shares"));
  EXPECT_THAT(failing({0.5f, 0.5f}, {0, 0}), HasSubstr("initial_dist must be shares"));
  EXPECT_THAT(failing({0.5f, 0.5f}, {1}), HasSubstr("2 classes, initial_dist 1"));
  // A class that there is not. Few draws of chance may ask for no filtered element.
  EXPECT_THROW(for ([[maybe_unused]] const Element& e
                    : range(200).rejection_resample([](Tensor x) { return x; }, {0.5f, 0.5f},
                                                    {.initial_dist = {0.2f, 0.8f}})){},
               InvalidArgumentError);
}

// Also where no element is left out, so that nothing asks how often its class comes.
TEST(RejectionResample, RefusesClassesBeyondTheTarget) {
  const auto message = [](std::int64_t first, std::vector<float> initial) {
    const Dataset ds = range(10).map([first](Tensor x) { return x + first; });
    return message_of_thrown<InvalidArgumentError>([&] {
      for ([[maybe_unused]] const Element& e :
           ds.rejection_resample([](Tensor x) { return cast(x, int32); }, {0.5f, 0.5f},
                                 {.initial_dist = initial, .seed = 1})) {
      }
    });
  };
  for (const std::vector<float>& initial : {std::vector<float>{}, {0.5f, 0.5f}, {0.2f, 0.8f}}) {
    EXPECT_THAT(message(0, initial),
                AllOf(HasSubstr("class 2, but target_dist has 2 classes: 0 to 1"),
                      HasSubstr("in rejection_resample, element 2")));
    EXPECT_THAT(message(100, initial), AllOf(HasSubstr("class 100"), HasSubstr("element 0")));
    EXPECT_THAT(message(-1, initial), AllOf(HasSubstr("class -1"), HasSubstr("element 0")));
  }
  EXPECT_THAT(message_of_thrown<InvalidArgumentError>([] {
                range(2)
                    .rejection_resample([](Tensor x) { return cast(x, float32); }, {1, 1},
                                        {.initial_dist = {1, 1}})
                    .iterator()
                    .next();
              }),
              HasSubstr("int32 or int64"));
}

}  // namespace
}  // namespace tandem::data
