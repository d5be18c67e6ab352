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

// Some have fewer elements than a block has threads, some more; matrices and vectors.
std::vector<Variable> variables(std::int64_t count) {
  std::vector<Variable> all;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = 0.1f * static_cast<float>(i % 13);
    all.emplace_back(i % 2 == 0 ? fill({i % 7 == 0 ? 200 + i : 3, 5}, value) : fill({5}, value));
  }
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

using MakeOptimizer = keras::Optimizer (*)();

// Gradients are trees of elementwise ops on the variables.
Outcome train(const char* device, MakeOptimizer make, std::int64_t count) {
  const DeviceScope on(device);
  const std::vector<Variable> all = variables(count);
  keras::Optimizer optimizer = make();
  optimizer.build(all);
  auto step = function([&](const Tensor& x) {
    std::vector<Tensor> gradients;
    for (const Variable& v : all) gradients.push_back((v.read_value() - x) * 2.0f);
    optimizer.apply(gradients, all);
    return reduce_sum(x);
  });
  const Tensor x(0.25f);
  long long before = 0;
  for (int i = 0; i < 6; ++i) {
    before = driver().kernels();
    step(x).item<float>();
  }
  const long long kernels = driver().kernels() - before;
  return {values(all), kernels};
}

struct OptimizerCase {
  const char* name;
  MakeOptimizer make;
  int launches;  // of a step: that of the gradients, what its scalars need, and the optimizer's own
  std::int64_t variables = 20;
};

class StepsOfManyVariables : public testing::TestWithParam<OptimizerCase> {};

TEST_P(StepsOfManyVariables, AreFewLaunches) {
  const auto& [name, make, launches, count] = GetParam();
  const Outcome wanted = train("/CPU:0", make, count), got = train("/GPU:0", make, count);
  EXPECT_THAT(got.values, Pointwise(FloatNear(1e-5f), wanted.values));
  EXPECT_LE(got.kernels, launches);
}

namespace optimizers = keras::optimizers;

const OptimizerCase kCases[] = {
    {"sgd", [] { return keras::Optimizer("sgd"); }, 3},
    {"adam", [] { return keras::Optimizer("adam"); }, 6},
    {"adamw", [] { return keras::Optimizer("adamw"); }, 10},
    {"rmsprop", [] { return keras::Optimizer("rmsprop"); }, 5},
    {"adagrad", [] { return keras::Optimizer("adagrad"); }, 5},
    {"adadelta", [] { return keras::Optimizer("adadelta"); }, 3},
    {"adamax", [] { return keras::Optimizer("adamax"); }, 6},
    {"nadam", [] { return keras::Optimizer("nadam"); }, 14},
    {"ftrl", [] { return keras::Optimizer("ftrl"); }, 9},
    {"lion", [] { return keras::Optimizer("lion"); }, 5},
    // Norms and means of each variable.
    {"lamb", [] { return keras::Optimizer("lamb"); }, 30},
    {"adafactor", [] { return keras::Optimizer("adafactor"); }, 34},
    {"sgd_momentum", [] { return keras::Optimizer(optimizers::SGD({.momentum = 0.9})); }, 3},
    {"adam_amsgrad", [] { return keras::Optimizer(optimizers::Adam({.amsgrad = true})); }, 6},
    {"adam_clipnorm", [] { return keras::Optimizer(optimizers::Adam({.clipnorm = 0.5})); }, 22},
    {"adam_clipvalue", [] { return keras::Optimizer(optimizers::Adam({.clipvalue = 0.5})); }, 8},
    {"adam_global_clipnorm",
     [] { return keras::Optimizer(optimizers::Adam({.global_clipnorm = 0.5})); }, 18},
    {"adam_ema", [] { return keras::Optimizer(optimizers::Adam({.use_ema = true})); }, 12},
    {"rmsprop_centered", [] { return keras::Optimizer(optimizers::RMSprop({.centered = true})); },
     6},
    {"rmsprop_momentum",
     [] { return keras::Optimizer(optimizers::RMSprop({.momentum = 0.9, .centered = true})); }, 3},
    // More than a launch has places for.
    {"adam_of_150", [] { return keras::Optimizer("adam"); }, 14, 150},
    {"rmsprop_of_150", [] { return keras::Optimizer("rmsprop"); }, 18, 150},
};

INSTANTIATE_TEST_SUITE_P(Optimizers, StepsOfManyVariables, testing::ValuesIn(kCases),
                         [](const auto& name) { return std::string(name.param.name); });

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

// Variables that are changed by ops which no optimizer has.
TEST(StepsInOrder, OfVariablesThatReadEachOther) {
  const DeviceScope on("/GPU:0");
  const Variable a(fill({4}, 1.0f)), b(fill({4}, 0.0f));
  auto step = function([&](const Tensor& g) {
    a.assign_sub(g);
    b.assign_sub(a.read_value());
    a.assign_sub(b.read_value());
    return reduce_sum(g);
  });
  float first = 1.0f, second = 0.0f;
  for (int i = 0; i < 5; ++i) {
    step(fill({4}, 2.0f)).item<float>();
    first -= 2.0f;
    second -= first;
    first -= second;
    EXPECT_EQ(a.read_value().to_vector<float>(), std::vector<float>(4, first));
    EXPECT_EQ(b.read_value().to_vector<float>(), std::vector<float>(4, second));
  }
}

// Trees that are alike, each of which reads what the one before it has made.
TEST(StepsInOrder, OfAChainOfTrees) {
  const DeviceScope on("/GPU:0");
  const auto chain = function([](const Tensor& x) {
    std::vector<Tensor> all{x};
    for (int i = 0; i < 6; ++i) all.push_back(all.back() * 2.0f + 1.0f);
    return all;
  });
  for (int i = 0; i < 4; ++i) {
    const std::vector<Tensor> got = chain(fill({5}, 1.0f));
    float wanted = 1.0f;
    for (const Tensor& value : got) {
      EXPECT_EQ(value.to_vector<float>(), std::vector<float>(5, wanted));
      wanted = wanted * 2.0f + 1.0f;
    }
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
