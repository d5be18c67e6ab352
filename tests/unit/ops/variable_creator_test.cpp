#include "tandem/ops/variable_creator.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/ops/distributed_variable.h"
#include <tandem/tandem.h>

namespace tandem {
namespace {

using testing::ElementsAre;

TEST(VariableCreatorScope, InnermostFirstAsInTensorFlow) {
  std::vector<std::string> order;
  const auto noting = [&](const std::string& name) {
    return [&order, name](const NextVariableCreator& next, Tensor value, VariableOptions options) {
      order.push_back(name + " before");
      options.name += "/" + name;
      Variable made = next(value + 1.0f, options);
      order.push_back(name + " after");
      return made;
    };
  };
  const VariableCreatorScope outer(noting("outer"));
  const VariableCreatorScope inner(noting("inner"));
  const Variable v(Tensor(1.0f), {.name = "v"});
  EXPECT_THAT(order, ElementsAre("inner before", "outer before", "outer after", "inner after"));
  EXPECT_EQ(v.name(), "v/inner/outer");
  EXPECT_EQ(v.read_value().item<float>(), 3);
}

TEST(VariableCreatorScope, BelongsToItsThreadAndBlock) {
  int called = 0;
  {
    const VariableCreatorScope scope(
        [&](const NextVariableCreator& next, Tensor value, VariableOptions options) {
          ++called;
          options.trainable = false;
          return next(std::move(value), options);
        });
    EXPECT_FALSE(Variable(Tensor(1.0f)).trainable());
    EXPECT_FALSE(Variable([] { return Tensor(1.0f); }).trainable());
    std::thread([] { EXPECT_TRUE(Variable(Tensor(1.0f)).trainable()); }).join();
  }
  EXPECT_TRUE(Variable(Tensor(1.0f)).trainable());
  EXPECT_EQ(called, 2);
}

TEST(VariableCreatorScope, ACreatorsOwnVariablesGoToTheScopesAround) {
  int outer_calls = 0;
  const VariableCreatorScope outer(
      [&](const NextVariableCreator& next, Tensor value, VariableOptions options) {
        ++outer_calls;
        return next(std::move(value), options);
      });
  const VariableCreatorScope inner(
      [](const NextVariableCreator&, Tensor value, VariableOptions options) {
        return Variable(std::move(value), options);
      });
  EXPECT_EQ(Variable(Tensor(4.0f)).read_value().item<float>(), 4);
  EXPECT_EQ(outer_calls, 1);
}

TEST(VariableCreatorScope, LayersMakeTheirVariablesThroughIt) {
  std::vector<std::string> names;
  const VariableCreatorScope scope(
      [&](const NextVariableCreator& next, Tensor value, VariableOptions options) {
        names.push_back(options.name);
        return next(std::move(value), options);
      });
  keras::Dense dense(3);
  static_cast<void>(dense(ones({2, 4})));
  EXPECT_EQ(names.size(), 2u);
}

TEST(VariableCreatorScope, BadCreatorsAreRefused) {
  EXPECT_THROW(VariableCreatorScope{VariableCreator()}, InvalidArgumentError);
  const VariableCreatorScope scope(
      [](const NextVariableCreator&, Tensor, VariableOptions) { return Variable(); });
  EXPECT_THROW(Variable(Tensor(1.0f)), InvalidArgumentError);
}

class DistributedVariableTest : public testing::Test {
 protected:
  Variable on(const std::string& device, float value) {
    const DeviceScope scope(device);
    return Variable(Tensor{value, value}, {.name = "v"});
  }
  Variable make(VariableAggregation aggregation, float first = 1, float second = 3) {
    return make_distributed_variable({on("/GPU:0", first), on("/GPU:1", second)}, aggregation);
  }
  static float first_of(const Tensor& t) { return t.to_vector<float>()[0]; }
  static std::vector<float> parts(const Variable& v) {
    std::vector<float> values;
    for (const Variable& part : components_of(v)) values.push_back(first_of(part.read_value()));
    return values;
  }

  Runtime runtime_{{.devices = {.emulate = {"GPU:2,memory=64MiB"}}}};
  RuntimeScope scope_{runtime_};
};

TEST_F(DistributedVariableTest, MirroredOnesReadTheComponentHere) {
  const Variable v = make(VariableAggregation::kMirrored);
  EXPECT_TRUE(is_distributed(v));
  EXPECT_EQ(first_of(v.read_value()), 1);
  {
    const DeviceScope there("/GPU:1");
    EXPECT_EQ(first_of(v.read_value()), 3);
    EXPECT_THAT(v.device(), testing::HasSubstr("GPU:1"));
  }
  v.assign(Tensor{5.0f, 5.0f});
  EXPECT_THAT(parts(v), ElementsAre(5, 5));
  v.assign_add(Tensor{1.0f, 1.0f});
  v.assign_sub(Tensor{3.0f, 3.0f});
  EXPECT_THAT(parts(v), ElementsAre(3, 3));
}

TEST_F(DistributedVariableTest, SumsAndMeansAreComputedWhenRead) {
  const Variable sum = make(VariableAggregation::kSum), mean = make(VariableAggregation::kMean);
  EXPECT_EQ(first_of(sum.read_value()), 4);
  EXPECT_EQ(first_of(mean.read_value()), 2);
  {
    const DeviceScope there("/GPU:1");
    sum.assign_add(Tensor{2.0f, 2.0f});
  }
  EXPECT_THAT(parts(sum), ElementsAre(1, 5));
  sum.assign(Tensor{8.0f, 8.0f});
  EXPECT_THAT(parts(sum), ElementsAre(4, 4));
  EXPECT_EQ(first_of(sum.read_value()), 8);
  mean.assign(Tensor{8.0f, 8.0f});
  EXPECT_EQ(first_of(mean.read_value()), 8);
}

TEST_F(DistributedVariableTest, OnReadEachPlaceHasItsOwn) {
  const Variable v = make(VariableAggregation::kOnRead);
  const DeviceScope there("/GPU:1");
  v.assign(Tensor{7.0f, 7.0f});
  EXPECT_THAT(parts(v), ElementsAre(1, 7));
}

TEST_F(DistributedVariableTest, GoesWhereAVariableGoes) {
  const Variable v = make(VariableAggregation::kMirrored, 2, 2);
  GradientTape tape;
  const Tensor y = reduce_sum(v * v);
  EXPECT_EQ(first_of(tape.gradient(y, v)), 4);
  const auto f = function([&](Tensor x) {
    v.assign_add(x);
    return v.read_value() * 1.0f;
  });
  EXPECT_EQ(first_of(f(Tensor{1.0f, 1.0f})), 3);
  EXPECT_THAT(parts(v), ElementsAre(3, 3));
}

TEST_F(DistributedVariableTest, CreatorsMakeThem) {
  const VariableCreatorScope strategy(
      [](const NextVariableCreator& next, Tensor value, VariableOptions options) {
        std::vector<Variable> parts;
        for (const char* device : {"/GPU:0", "/GPU:1"}) {
          const DeviceScope scope(device);
          parts.push_back(next(value, options));
        }
        return make_distributed_variable(std::move(parts), VariableAggregation::kMirrored);
      });
  keras::Dense dense(3);
  static_cast<void>(dense(ones({2, 4})));
  for (const Variable& v : dense.variables()) EXPECT_EQ(components_of(v).size(), 2u);
}

TEST_F(DistributedVariableTest, ComponentsThatDoNotFitAreRefused) {
  using enum VariableAggregation;
  const Variable v(Tensor{1.0f, 2.0f}), shorter(Tensor{1.0f}), whole(Tensor{1, 2});
  EXPECT_THROW(make_distributed_variable({}, kSum), InvalidArgumentError);
  EXPECT_THROW(make_distributed_variable({v, Variable()}, kSum), InvalidArgumentError);
  EXPECT_THROW(make_distributed_variable({v, shorter}, kSum), InvalidArgumentError);
  EXPECT_THROW(make_distributed_variable({v, whole}, kSum), InvalidArgumentError);
  EXPECT_THROW(make_distributed_variable({whole, whole}, kMean), InvalidArgumentError);
  EXPECT_THROW(make_distributed_variable({make(kSum)}, kSum), InvalidArgumentError);
}

}  // namespace
}  // namespace tandem
