#include "tandem/ops/random_ops.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/random_generator.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

std::string message_of_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvalidArgumentError& e) {
    return e.what();
  }
  return "no error";
}

// The values that TensorFlow 2.21 gives.
TEST(Random, StatelessShuffleIsTensorFlows) {
  const Tensor key = tensor<std::uint64_t>({7});
  const Tensor counter = tensor<std::uint64_t>({1, 0});
  EXPECT_THAT(
      raw_op("StatelessShuffle", {range(10), key, counter, Tensor(1)})[0].to_vector<std::int32_t>(),
      ElementsAre(7, 0, 5, 9, 8, 3, 4, 1, 6, 2));
}

// The values and the state that TensorFlow 2.21 leaves.
TEST(Random, BinomialNumbersFromAGeneratorAreTensorFlows) {
  const Variable state(tensor<std::int64_t>({5, 6, 7}));
  const Tensor drawn =
      raw_op("StatefulRandomBinomial", {state.handle(), Tensor(std::int64_t{1}), tensor({6, 2}),
                                        tensor({10.0, 100.0}), tensor({0.4, 0.9})})[0];
  EXPECT_EQ(drawn.shape(), Shape({6, 2}));
  EXPECT_THAT(drawn.to_vector<std::int64_t>(),
              ElementsAre(6, 92, 4, 91, 3, 88, 6, 94, 3, 93, 5, 89));
  EXPECT_THAT(state.read_value().to_vector<std::int64_t>(), ElementsAre(230405, 6, 7));
}

TEST(Random, BinomialCountsMayBeIntegers) {
  const std::vector<std::int32_t> expected =
      random::Generator::from_seed(1234).binomial({8}, 10.0, 0.5).to_vector<std::int32_t>();
  EXPECT_EQ(random::Generator::from_seed(1234).binomial({8}, 10, 0.5).to_vector<std::int32_t>(),
            expected);
  EXPECT_NE(expected, std::vector<std::int32_t>(8, 0));
  EXPECT_EQ(random::stateless_binomial({8}, {1, 2}, 10, 0.5).to_vector<std::int32_t>(),
            random::stateless_binomial({8}, {1, 2}, 10.0, 0.5).to_vector<std::int32_t>());
}

TEST(Random, VariatesGiveNoEndlessLoops) {
  const float nan = std::nanf("");
  const Tensor rates = tensor({nan, INFINITY, -1.0f, 0.0f});
  const auto counts = floats(random::stateless_poisson({4}, {1, 2}, rates, float32));
  EXPECT_TRUE(std::isnan(counts[0]));
  EXPECT_EQ(counts[1], INFINITY);
  EXPECT_THAT((std::vector<float>{counts[2], counts[3]}), ElementsAre(0, 0));
  const auto gammas = floats(random::stateless_gamma({4}, {1, 2}, rates));
  EXPECT_TRUE(std::isnan(gammas[0]));
  EXPECT_EQ(gammas[1], INFINITY);
  EXPECT_TRUE(std::isnan(gammas[2]));
  EXPECT_EQ(gammas[3], 0);
}

TEST(Random, EqualSeedsGiveEqualNumbersAndGoOn) {
  Runtime runtime;
  const RuntimeScope scope(runtime);
  const auto first = floats(random::uniform({5}, {.seed = 7}));
  const auto second = floats(random::uniform({5}, {.seed = 7}));
  EXPECT_NE(first, second) << "the sequence goes on";
  Runtime other;
  const RuntimeScope inner(other);
  EXPECT_EQ(floats(random::uniform({5}, {.seed = 7})), first);
  EXPECT_EQ(floats(random::uniform({5}, {.seed = 7})), second);
}

TEST(Random, SetSeedStartsAgain) {
  Runtime runtime;
  const RuntimeScope scope(runtime);
  const auto run = [] {
    random::set_seed(3);
    std::vector<float> all = floats(random::normal({3}));
    const auto more = floats(random::uniform({3}));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_EQ(run(), run());
}

// As TensorFlow's are called: by position, then by name.
TEST(Random, OptionsFollowArgumentsByPosition) {
  const auto again = [](const std::function<Tensor()>& draw) {
    random::set_seed(1);
    return draw().to_string();
  };
  const auto options = [] {
    return random::uniform({3}, {.maxval = 10, .dtype = int32, .seed = 3});
  };
  EXPECT_EQ(again(options), "[7 2 9]");  // TensorFlow's
  EXPECT_EQ(again([] { return random::uniform({3}, 0, 10, {.dtype = int32, .seed = 3}); }),
            "[7 2 9]");
  EXPECT_EQ(
      again([] { return random::uniform({3}, 0, {.maxval = 10, .dtype = int32, .seed = 3}); }),
      "[7 2 9]");
  EXPECT_EQ(again([] { return random::uniform({3}, 0, 10, int32, 3); }), "[7 2 9]");
  EXPECT_EQ(again([] { return random::uniform({3}, 0, 10, "int32", {.seed = 3}); }), "[7 2 9]");
  const std::string normal =
      again([] { return random::normal({2}, {.mean = 1, .stddev = 2, .seed = 4}); });
  EXPECT_EQ(again([] { return random::normal({2}, 1, 2, {.seed = 4}); }), normal);
  EXPECT_EQ(again([] { return random::normal({2}, 1, {.stddev = 2, .seed = 4}); }), normal);
  EXPECT_EQ(again([] { return random::normal({2}, 1, 2, float32, {.seed = 4}); }), normal);
  EXPECT_EQ(again([] { return random::truncated_normal({2}, 1, 2, {.seed = 4}); }), again([] {
              return random::truncated_normal({2}, {.mean = 1, .stddev = 2, .seed = 4});
            }));
  EXPECT_EQ(random::stateless_uniform({3}, {1, 2}, 0, 10, int32).to_string(),
            random::stateless_uniform({3}, {1, 2}, {.maxval = 10, .dtype = int32}).to_string());
  EXPECT_THAT(message_of_error([] { random::normal({2}, 1, 2, {.mean = 3}); }),
              HasSubstr("'mean' is given twice"));
  EXPECT_THAT(message_of_error([] { random::uniform({2}, 1, 2, {.maxval = 3}); }),
              HasSubstr("'maxval' is given twice"));
}

TEST(Random, GammaNumbersAreDividedByBeta) {
  random::set_seed(1);
  const auto numbers = floats(random::gamma({2}, {2.0}, {.beta = {4.0, 2.0}, .seed = 5}));
  const std::vector<float> tensorflow{0.79706573F, 0.19000778F, 0.90727717F, 0.9052375F};
  EXPECT_THAT(numbers, testing::Pointwise(testing::FloatNear(1e-5F), tensorflow));
}

TEST(Random, WithoutSeedsRunsDiffer) {
  const auto draw = [] {
    Runtime runtime;
    const RuntimeScope scope(runtime);
    return floats(random::uniform({8}));
  };
  EXPECT_NE(draw(), draw());
}

TEST(Random, StatelessNumbersDependOnTheSeedAlone) {
  EXPECT_EQ(floats(random::stateless_normal({4}, {1, 2})),
            floats(random::stateless_normal({4}, {1, 2})));
  EXPECT_NE(floats(random::stateless_normal({4}, {1, 2})),
            floats(random::stateless_normal({4}, {1, 3})));
  const auto some = floats(random::stateless_uniform({5}, {1, 2}));
  auto more = floats(random::stateless_uniform({9}, {1, 2}));
  more.resize(5);
  EXPECT_EQ(some, more);
}

// Large enough for several threads, odd enough for a last group that is cut.
TEST(Random, NumbersDoNotDependOnTheNumberOfThreads) {
  const auto draw = [](int threads, DType dtype) {
    Runtime runtime(Runtime::Options{1, threads});
    const RuntimeScope scope(runtime);
    std::vector<Tensor> all{random::stateless_uniform({40003}, {5, 6}, {.dtype = dtype}),
                            random::stateless_normal({40003}, {5, 6}, {.dtype = dtype}),
                            random::stateless_truncated_normal({40003}, {5, 6}, {.dtype = dtype})};
    return all;
  };
  for (const DType dtype : {float32, float64, float16}) {
    const auto alone = draw(1, dtype);
    const auto together = draw(4, dtype);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(alone[i].array() == together[i].array()) << dtype << " distribution " << i;
    }
  }
}

// The counter's low word overflows in the middle of what a vector of blocks takes.
TEST(Random, CountersCarry) {
  const Tensor key = tensor<std::uint64_t>({7});
  const auto uniform = [&](std::uint64_t low, std::int64_t n) {
    return floats(
        raw_op("StatelessRandomUniformV2",
               {Tensor{static_cast<int>(n)}, key, tensor<std::uint64_t>({low, 9}), Tensor(1)})[0]);
  };
  const std::uint64_t before = 0xfffffffd;
  const auto whole = uniform(before, 4 * 40);
  for (std::uint64_t block = 0; block < 40; ++block) {
    const auto one = uniform(before + block, 4);
    ASSERT_TRUE(
        std::equal(one.begin(), one.end(), whole.begin() + static_cast<std::ptrdiff_t>(4 * block)))
        << block;
  }
}

TEST(Random, DistributionsHaveTheirMoments) {
  const auto moments = [](const std::vector<float>& x) {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    double square = 0;
    for (float v : x) square += (v - mean) * (v - mean);
    return std::pair(mean, std::sqrt(square / static_cast<double>(x.size())));
  };
  const auto [mean, deviation] =
      moments(floats(random::stateless_normal({100000}, {1, 1}, {.mean = 3, .stddev = 2})));
  EXPECT_NEAR(mean, 3, 0.03);
  EXPECT_NEAR(deviation, 2, 0.03);
  const auto truncated = floats(random::stateless_truncated_normal({10000}, {1, 1}));
  EXPECT_TRUE(
      std::all_of(truncated.begin(), truncated.end(), [](float v) { return std::abs(v) < 2; }));
  const auto uniform =
      floats(random::stateless_uniform({10000}, {1, 1}, {.minval = -1, .maxval = 4}));
  EXPECT_GE(*std::min_element(uniform.begin(), uniform.end()), -1);
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 4);
  EXPECT_NEAR(moments(uniform).first, 1.5, 0.05);
}

TEST(Random, IntegersStayInTheirRange) {
  const auto draws = random::uniform({1000}, {.minval = -2, .maxval = 3, .dtype = int64, .seed = 1})
                         .to_vector<std::int64_t>();
  EXPECT_EQ(std::set<std::int64_t>(draws.begin(), draws.end()),
            (std::set<std::int64_t>{-2, -1, 0, 1, 2}));
  EXPECT_THAT(message_of_error([] { random::uniform({2}, {.dtype = int32}); }),
              HasSubstr("Must specify maxval"));
  EXPECT_THAT(
      message_of_error([] { random::uniform({2}, {.minval = 5, .maxval = 5, .dtype = int32}); }),
      HasSubstr("Need minval < maxval, got 5 >= 5"));
  EXPECT_THAT(message_of_error([] {
                random::stateless_uniform({2}, {1, 2, 3});
              }),
              HasSubstr("seed must have shape [2]"));
  EXPECT_THAT(message_of_error([] { random::uniform({-2}); }), HasSubstr("must be >= 0"));
}

TEST(Random, ShufflesKeepTheRows) {
  const Tensor x = Tensor::from(std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5}, {4, 2});
  const auto shuffled = floats(random::shuffle(x, 5));
  std::vector<float> firsts;
  for (std::size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(shuffled[2 * row + 1], shuffled[2 * row] + 0.5f) << "rows stay whole";
    firsts.push_back(shuffled[2 * row]);
  }
  std::sort(firsts.begin(), firsts.end());
  EXPECT_THAT(firsts, ElementsAre(0, 1, 2, 3));
}

TEST(Random, ClassesComeAsOftenAsTheirLogitsSay) {
  const Tensor logits{{0.0f, std::log(3.0f)}, {-INFINITY, 0.0f}};
  const Tensor draws = random::categorical(logits, 4000, int64, 9);
  const auto classes = draws.to_vector<std::int64_t>();
  EXPECT_NEAR(static_cast<double>(
                  std::accumulate(classes.begin(), classes.begin() + 4000, std::int64_t{0})) /
                  4000,
              0.75, 0.03);
  EXPECT_EQ(std::accumulate(classes.begin() + 4000, classes.end(), std::int64_t{0}), 4000);
}

TEST(Random, TracedFunctionsDrawAgainAtEachCall) {
  Runtime runtime;
  const RuntimeScope scope(runtime);
  auto f = function([](Tensor x) { return random::uniform(IntList(x), {.seed = 4}); });
  const auto first = floats(f(Tensor{6}));
  EXPECT_NE(floats(f(Tensor{6})), first);
  EXPECT_EQ(f.num_traces(), 1u);
}

}  // namespace
}  // namespace tandem
