#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/traced_function.h"

namespace tandem {
namespace {

using Branch = std::function<Tensor()>;

Tensor choose(const Tensor& index, const Tensor& x, const Tensor& y) {
  return switch_case(index, std::vector<Branch>{[&] { return x + 1.0; }, [&] { return x * y; },
                                                [&] { return -y; }});
}

TEST(SwitchCase, TakesTheBranchAndTheLastForAllOtherIndices) {
  auto traced = function(choose);
  for (const int i : {-1, 0, 1, 2, 3, 7}) {
    const float expected = i == 0 ? 4.0f : i == 1 ? 15.0f : -5.0f;
    EXPECT_EQ(choose(Tensor(i), Tensor(3.0), Tensor(5.0)).item<float>(), expected) << i;
    EXPECT_EQ(traced(Tensor(i), Tensor(3.0), Tensor(5.0)).item<float>(), expected) << i;
  }
}

TEST(SwitchCase, HasGradients) {
  const auto gradient = [](Tensor index, Tensor x, Tensor y) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(y);
    const Tensor z = choose(index, x, y) * 2.0;
    return tape.gradient(z, std::vector<Tensor>{x, y}, UnconnectedGradients::kZero);
  };
  auto traced = function(gradient);
  const float expected[3][2] = {{2, 0}, {10, 6}, {0, -2}};
  for (int i = 0; i < 3; ++i) {
    for (const auto& grads : {gradient(Tensor(i), Tensor(3.0), Tensor(5.0)),
                              traced(Tensor(i), Tensor(3.0), Tensor(5.0))}) {
      EXPECT_EQ(grads[0].item<float>(), expected[i][0]) << i;
      EXPECT_EQ(grads[1].item<float>(), expected[i][1]) << i;
    }
  }
}

TEST(SwitchCase, HasSecondGradientsWhenTraced) {
  auto second = function([](Tensor index, Tensor x) {
    GradientTape outer;
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    const Tensor y =
        switch_case(index, std::vector<Branch>{[&] { return x * x * x; }, [&] { return x * x; }});
    return outer.gradient(inner.gradient(y, x), x);
  });
  EXPECT_EQ(second(Tensor(0), Tensor(2.0)).item<float>(), 12.0f);
  EXPECT_EQ(second(Tensor(1), Tensor(2.0)).item<float>(), 2.0f);
}

TEST(SwitchCase, BranchesMustAgree) {
  auto traced = function([](Tensor index) {
    return switch_case(index,
                       std::vector<Branch>{[] { return Tensor(1.0); }, [] { return Tensor(1); }});
  });
  EXPECT_THROW(traced(Tensor(0)), InvalidArgumentError);
  EXPECT_THROW(switch_case(Tensor(0), std::vector<Branch>{}), InvalidArgumentError);
}

TEST(Case, TakesTheFirstThatIsTrue) {
  const auto f = [](Tensor x) {
    return case_(std::vector<std::pair<Tensor, Branch>>{{x < 0.0, [&] { return -x; }},
                                                        {x < 10.0, [&] { return x * 2.0; }}},
                 [&] { return x + 100.0; });
  };
  auto traced = function(f);
  for (const auto& [x, y] : {std::pair(-3.0, 3.0f), {4.0, 8.0f}, {20.0, 120.0f}}) {
    EXPECT_EQ(f(Tensor(x)).item<float>(), y);
    EXPECT_EQ(traced(Tensor(x)).item<float>(), y);
  }
}

}  // namespace
}  // namespace tandem
