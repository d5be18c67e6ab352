// Models whose weights lie where a scope or a user put them, trained outside of it: the optimizer's
// variables are with their weights, and the figures are those of one device.
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::keras {
namespace {

const char* const kOptimizers[] = {"sgd",     "adam",   "adamw", "rmsprop",
                                   "adagrad", "adamax", "nadam", "adadelta"};

struct Layers {
  Layer first =
      Dense(6, {.activation = "tanh", .kernel_initializer = initializers::GlorotUniform(3)});
  Layer second = Dense(1, {.kernel_initializer = initializers::GlorotUniform(4)});

  void build(const std::string& device_of_first, const std::string& device_of_second) const {
    {
      const DeviceScope on(device_of_first);
      first.build({-1, 3});
    }
    const DeviceScope on(device_of_second);
    second.build({-1, 6});
  }
  Sequential model() const { return Sequential{Input({3}), first, second}; }
};

struct Trained {
  std::vector<double> losses;
  std::vector<std::vector<float>> weights;
};

Trained train(const Model& model) {
  const Tensor x{{0.1, 0.5, -0.2}, {0.9, -0.3, 0.4}, {-0.7, 0.2, 0.6}, {0.3, 0.3, -0.8}};
  const Tensor y{{1.0}, {0.0}, {0.5}, {-1.0}};
  const History history = model.fit(
      x, y, {.batch_size = 2, .epochs = 3, .verbose = Verbose::kSilent, .shuffle = false});
  Trained trained{history["loss"], {}};
  for (const Tensor& w : model.get_weights()) trained.weights.push_back(w.to_vector<float>());
  return trained;
}

Trained train_on(const Optimizer& optimizer, const std::string& first, const std::string& second) {
  const Layers layers;
  layers.build(first, second);
  const Model model = layers.model();
  model.compile({.optimizer = optimizer, .loss = "mse"});
  Trained trained = train(model);
  // What goes with a weight is named after it.
  for (const Variable& weight : model.trainable_weights()) {
    std::string stem = weight.name();
    stem.replace(stem.find('/'), 1, "_");
    int slots = 0;
    for (const Variable& slot : model.optimizer().variables()) {
      if (slot.name().find("/" + stem + "_") == std::string::npos) continue;
      ++slots;
      EXPECT_EQ(slot.device(), weight.device()) << slot.name();
    }
    if (model.optimizer().impl()->class_name() == "SGD") {
      EXPECT_EQ(slots, 0) << weight.name();
    } else {
      EXPECT_GT(slots, 0) << weight.name();
    }
  }
  return trained;
}

void expect_near(const Trained& trained, const Trained& expected) {
  ASSERT_EQ(trained.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(trained.losses[i], expected.losses[i], 1e-6);
  ASSERT_EQ(trained.weights.size(), expected.weights.size());
  for (std::size_t i = 0; i < expected.weights.size(); ++i)
    EXPECT_THAT(trained.weights[i],
                testing::Pointwise(testing::FloatNear(1e-6f), expected.weights[i]));
}

class ModelDevices : public testing::TestWithParam<const char*> {};

TEST_P(ModelDevices, TrainAsOneDeviceDoes) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const Trained expected = train_on(GetParam(), "/GPU:0", "/GPU:0");
  for (const auto& [first, second] :
       std::vector<std::pair<const char*, const char*>>{{"/GPU:1", "/GPU:1"},
                                                        {"/CPU:0", "/CPU:0"},
                                                        {"/GPU:0", "/GPU:1"},
                                                        {"/CPU:0", "/GPU:1"}}) {
    SCOPED_TRACE(std::string(first) + " and " + second);
    expect_near(train_on(GetParam(), first, second), expected);
  }
}

TEST_P(ModelDevices, TakeWhatWasSavedOfTheOptimizer) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  const auto make = [&] {
    const Layers layers;
    layers.build("/GPU:1", "/GPU:1");
    const Model model = layers.model();
    model.compile({.optimizer = GetParam(), .loss = "mse"});
    return model;
  };
  const Folder folder;
  const Model model = make();
  train(model);
  model.save_weights(folder.file("weights"), {.optimizer = true});
  const Model again = make();
  again.load_weights(folder.file("weights"), {.optimizer = true});
  expect_near(train(again), train(model));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, ModelDevices, testing::ValuesIn(kOptimizers),
                         [](const auto& test) { return std::string(test.param); });

// A caller that makes them apart learns from the error how to make them together.
TEST(ModelDevicesErrors, SayHowVariablesComeTogether) {
  Runtime runtime({.devices = {.emulate = {"GPU:2,memory=8MiB,latency=0us"}}});
  RuntimeScope scope(runtime);
  Variable weight, slot;
  {
    const DeviceScope on("/GPU:0");
    weight = Variable(zeros({2}), {.name = "weight"});
  }
  {
    const DeviceScope on("/GPU:1");
    slot = Variable(zeros({2}), {.name = "slot"});
  }
  const auto step = function([&](Tensor g) {
    training::apply_momentum(weight, slot, Tensor(0.1f), g, Tensor(0.9f));
    return g;
  });
  try {
    step(ones({2}));
    FAIL() << "two devices for one op";
  } catch (const InvalidArgumentError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("under td::colocate_with(the other)"));
  }
}

}  // namespace
}  // namespace tandem::keras
