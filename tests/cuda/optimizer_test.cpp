// Steps of optimizers on a device GPU:0 whose kernels run on the host: those of many variables are
// few launches, and are what the CPU makes of them.

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/cuda/stand_in_driver.h"

namespace tandem {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr std::int64_t kVariables = 150;

// Some have fewer elements than a block has threads, some more.
std::vector<Variable> variables() {
  std::vector<Variable> all;
  for (std::int64_t i = 0; i < kVariables; ++i)
    all.emplace_back(fill({i % 7 == 0 ? 1000 + i : 3}, 0.1f * static_cast<float>(i % 13)));
  return all;
}

std::vector<float> values(const std::vector<Variable>& variables) {
  std::vector<float> all;
  for (const Variable& v : variables) {
    const std::vector<float> of_one = v.read_value().to_vector<float>();
    all.insert(all.end(), of_one.begin(), of_one.end());
  }
  return all;
}

struct Outcome {
  std::vector<float> values;
  long long kernels;  // of a step
};

Outcome train(const char* device, const std::string& name) {
  const DeviceScope on(device);
  const std::vector<Variable> all = variables();
  keras::Optimizer optimizer(name);
  optimizer.build(all);
  auto step = function([&](const Tensor& small, const Tensor& large) {
    std::vector<Tensor> gradients;
    for (const Variable& v : all) {
      const std::int64_t size = v.shape().to_shape().num_elements();
      gradients.push_back(size == 3 ? small : slice(large, {0}, {size}));
    }
    optimizer.apply(gradients, all);
    return reduce_sum(small);
  });
  const Tensor small = fill({3}, 0.25f), large = fill({2000}, -0.5f);
  long long before = 0;
  for (int i = 0; i < 6; ++i) {
    before = driver().kernels();
    step(small, large).item<float>();
  }
  const long long kernels = driver().kernels() - before;
  return {values(all), kernels};
}

// Keras' other optimizers are trees of elementwise ops.
class StepsOfManyVariables : public testing::TestWithParam<const char*> {};

TEST_P(StepsOfManyVariables, AreFewLaunches) {
  const Outcome wanted = train("/CPU:0", GetParam()), got = train("/GPU:0", GetParam());
  EXPECT_THAT(got.values, Pointwise(FloatNear(1e-5f), wanted.values));
  // 22 slices of the large gradient, and what the step's scalars need.
  EXPECT_LE(got.kernels, 22 + 30);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, StepsOfManyVariables, testing::Values("sgd", "adam"),
                         [](const auto& name) { return std::string(name.param); });

// ---- Steps whose order matters ----

void apply(const Variable& v, const Tensor& gradient) {
  raw_op("ResourceApplyGradientDescent", {v.handle(), Tensor(0.5f), gradient},
         {{"T", DType::kFloat}});
}

// A value that is held stays as it was: the variable gets memory of its own.
TEST(StepsInOrder, LeaveValuesThatAreHeld) {
  const DeviceScope on("/GPU:0");
  const Variable v(fill({2, 3}, 1.0f));
  const Tensor before = v.read_value();
  v.assign_sub(fill({2, 3}, 0.25f));
  EXPECT_EQ(v.read_value().to_vector<float>(), std::vector<float>(6, 0.75f));
  EXPECT_EQ(before.to_vector<float>(), std::vector<float>(6, 1.0f));
}

TEST(StepsInOrder, OfOneVariable) {
  const DeviceScope on("/GPU:0");
  const Variable v(fill({4}, 1.0f));
  auto step = function([&](const Tensor& g) {
    apply(v, g);
    apply(v, v.read_value() * 2.0f);
    apply(v, g);
    return reduce_sum(g);
  });
  // 1 - 1 = 0, 0 - 0 = 0, 0 - 1 = -1; -1 - 1 = -2, -2 + 2 = 0, 0 - 1 = -1.
  for (int i = 0; i < 4; ++i) {
    step(fill({4}, 2.0f)).item<float>();
    EXPECT_EQ(v.read_value().to_vector<float>(), std::vector<float>(4, -1.0f));
  }
}

// The gradient of the second is what the first has made of its variable.
TEST(StepsInOrder, OfAVariableThatIsAnothersGradient) {
  const DeviceScope on("/GPU:0");
  const Variable a(fill({4}, 1.0f)), b(fill({4}, 0.0f));
  auto step = function([&](const Tensor& g) {
    apply(a, g);
    apply(b, a.read_value());
    apply(a, b.read_value());
    return reduce_sum(g);
  });
  float first = 1.0f, second = 0.0f;
  for (int i = 0; i < 5; ++i) {
    step(fill({4}, 2.0f)).item<float>();
    first -= 1.0f;
    second -= 0.5f * first;
    first -= 0.5f * second;
    EXPECT_EQ(a.read_value().to_vector<float>(), std::vector<float>(4, first));
    EXPECT_EQ(b.read_value().to_vector<float>(), std::vector<float>(4, second));
  }
}

// The learning rate of the second is what the first has changed.
TEST(StepsInOrder, OfAVariableThatIsAnothersRate) {
  const DeviceScope on("/GPU:0");
  const Variable rate(Tensor(1.0f)), v(fill({4}, 0.0f));
  auto step = function([&](const Tensor& g) {
    raw_op("ResourceApplyGradientDescent", {rate.handle(), rate.read_value(), Tensor(0.5f)},
           {{"T", DType::kFloat}});
    raw_op("ResourceApplyGradientDescent", {v.handle(), rate.read_value(), g},
           {{"T", DType::kFloat}});
    return reduce_sum(g);
  });
  float now = 1.0f, wanted = 0.0f;
  for (int i = 0; i < 4; ++i) {
    step(fill({4}, 2.0f)).item<float>();
    now -= now * 0.5f;
    wanted -= now * 2.0f;
    EXPECT_EQ(v.read_value().to_vector<float>(), std::vector<float>(4, wanted));
  }
}

}  // namespace
}  // namespace tandem
