// Things destroyed in any order, and memory that cannot be had.
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

using testing::HasSubstr;

TEST(Lifetime, TensorsOutliveTheirRuntime) {
  std::optional<Tensor> kept;
  {
    Runtime runtime;
    RuntimeScope scope(runtime);
    kept = random::uniform({3}, {.seed = 1}) + 1;
  }
  EXPECT_EQ((*kept + *kept).num_elements(), 3);
}

TEST(Lifetime, AFunctionServesSeveralRuntimes) {
  auto f = function([](Tensor x) { return x * 2; });
  for (int i = 0; i < 3; ++i) {
    Runtime runtime({.intra_op_threads = 1 + i});
    RuntimeScope scope(runtime);
    EXPECT_EQ(f(Tensor(4)).item<int>(), 8);
  }
  EXPECT_EQ(f(Tensor(4)).item<int>(), 8);
}

TEST(Lifetime, VariablesOutliveTheirRuntime) {
  std::optional<Variable> v;
  {
    Runtime runtime;
    RuntimeScope scope(runtime);
    v.emplace(Tensor{1.0, 2.0});
  }
  EXPECT_EQ((*v + 1).to_vector<float>(), (std::vector<float>{2, 3}));
  v->assign(Tensor{5.0, 6.0});
  EXPECT_EQ((*v + 1).to_vector<float>(), (std::vector<float>{6, 7}));
}

TEST(Lifetime, TapesFunctionsAndVariablesEndInAnyOrder) {
  for (int order = 0; order < 6; ++order) {
    std::optional<Variable> v(Tensor{1.0, 2.0});
    auto f = std::make_optional(function([w = *v](Tensor x) { return x * w; }));
    std::optional<GradientTape> tape(std::in_place, GradientTape::Options{.persistent = true});
    std::optional<Tensor> y = (*f)(Tensor{3.0, 4.0});
    if (order % 3 == 0) f.reset();
    if (order % 2 == 0) v.reset();
    if (order % 3 == 1) y.reset();
    if (order % 3 == 2) tape.reset();
    f.reset();
    v.reset();
    tape.reset();
    y.reset();
  }
}

// 2^61 bytes: no machine has them, and no size overflows.
constexpr std::int64_t kTooMany = std::int64_t{1} << 59;

TEST(Memory, ThatCannotBeHadIsAnErrorEagerly) {
  EXPECT_THROW(zeros({kTooMany}), ResourceExhaustedError);
  try {
    const Tensor wide = broadcast_to(Tensor(1.0f), {kTooMany});
    FAIL() << "allocated";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("BroadcastTo"));
  }
  EXPECT_EQ((zeros({2}) + 1).to_vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Runtime, ThatEndsBeforeItsScopeRefusesCallsThere) {
  std::optional<Tensor> x;
  {
    auto runtime = std::make_unique<Runtime>();
    const RuntimeScope scope(*runtime);
    x = ones({2});
    runtime.reset();
    EXPECT_THROW(*x + 1, CancelledError);
  }
  EXPECT_EQ((*x + 1).to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST(Memory, ThatCannotBeHadIsAnErrorInFunctions) {
  auto f = function(
      [](Tensor x, Tensor size) { return reduce_sum(broadcast_to(x, reshape(size, {1})) * 2.0); });
  const Tensor x(1.0f);
  EXPECT_EQ(f(x, Tensor(std::int64_t{3})).item<float>(), 6);
  EXPECT_THROW(f(x, Tensor(kTooMany)), ResourceExhaustedError);
  EXPECT_EQ(f(x, Tensor(std::int64_t{4})).item<float>(), 8);
  // In the arena of a function whose shapes are known.
  auto known = function([](Tensor y) { return reduce_sum(broadcast_to(y, {kTooMany}) * y); });
  EXPECT_THROW(known(x), ResourceExhaustedError);
  EXPECT_THROW(known(x), ResourceExhaustedError);
}

}  // namespace
}  // namespace tandem
