// What all optimizers can do besides their step: gradients that accumulate, averages, constraints.
#include <vector>

#include <gtest/gtest.h>

#include "tandem/tandem.h"

namespace td = tandem;

namespace {

namespace keras = td::keras;
using keras::optimizers::SGD;
using td::Tensor;

std::vector<float> values(const td::Variable& v) { return v.read_value().to_vector<float>(); }

TEST(GradientAccumulation, ChangesWeightsInEveryNthStepByTheMean) {
  const td::Variable w(Tensor{1.0, 2.0});
  const SGD sgd({.learning_rate = 0.5, .gradient_accumulation_steps = 2});
  sgd.apply_gradients({{Tensor{1.0, 1.0}, w}});
  EXPECT_EQ(values(w), (std::vector<float>{1, 2}));
  EXPECT_EQ(sgd.iterations(), 0);
  sgd.apply_gradients({{Tensor{3.0, 0.0}, w}});
  EXPECT_EQ(values(w), (std::vector<float>{0, 1.75}));
  EXPECT_EQ(sgd.iterations(), 1);
  sgd.apply_gradients({{Tensor{1.0, 1.0}, w}});
  EXPECT_EQ(values(w), (std::vector<float>{0, 1.75}));
}

TEST(GradientAccumulation, WorksInATrace) {
  const td::Variable w(Tensor{1.0});
  const SGD sgd({.learning_rate = 1.0, .gradient_accumulation_steps = 2});
  sgd.build({w});
  auto step = td::function([&](Tensor g) {
    sgd.apply({g}, {w});
    return w.read_value();
  });
  step(Tensor{1.0});
  EXPECT_EQ(values(w), (std::vector<float>{1}));
  step(Tensor{2.0});
  EXPECT_EQ(values(w), (std::vector<float>{-0.5}));
}

TEST(MovingAverages, BeginWithTheFirstStepAndAreWrittenBack) {
  const td::Variable w(Tensor{1.0});
  const SGD sgd({.learning_rate = 1.0, .use_ema = true, .ema_momentum = 0.5});
  sgd.apply({Tensor{-1.0}}, {w});  // w = 2 = the average
  sgd.apply({Tensor{-2.0}}, {w});  // w = 4, average 3
  EXPECT_EQ(values(w), (std::vector<float>{4}));
  sgd.finalize_variable_values();
  EXPECT_EQ(values(w), (std::vector<float>{3}));
}

TEST(MovingAverages, OverwriteWeightsEverySoManySteps) {
  const td::Variable w(Tensor{1.0});
  const SGD sgd(
      {.learning_rate = 1.0, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 2});
  sgd.apply({Tensor{-1.0}}, {w});
  EXPECT_EQ(values(w), (std::vector<float>{2}));
  sgd.apply({Tensor{-2.0}}, {w});
  EXPECT_EQ(values(w), (std::vector<float>{3}));
}

TEST(MovingAverages, AreTheWeightsAfterFit) {
  const keras::Sequential model{keras::Input({1}),
                                keras::Dense(1, {.use_bias = false, .kernel_initializer = "ones"})};
  model.compile({.optimizer = SGD({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 1.0}),
                 .loss = "mse"});
  model.fit(td::ones({4, 1}), td::zeros({4, 1}),
            {.batch_size = 1, .epochs = 1, .verbose = keras::Verbose::kSilent});
  // The average stays what it was after the first step: 1 - 0.1 · 2.
  EXPECT_NEAR(values(model.weights()[0])[0], 0.8, 1e-6);
}

TEST(LossScale, IsTakenOutOfTheGradients) {
  const td::Variable w(Tensor{1.0});
  const SGD sgd({.learning_rate = 1.0, .loss_scale_factor = 8.0});
  EXPECT_EQ(sgd.scale_loss(Tensor(2.0)).item<float>(), 16);
  sgd.apply({Tensor{8.0}}, {w});
  EXPECT_EQ(values(w), (std::vector<float>{0}));
}

TEST(Settings, AreChecked) {
  EXPECT_THROW(SGD({.gradient_accumulation_steps = 1}), td::InvalidArgumentError);
  EXPECT_THROW(SGD({.use_ema = true, .ema_momentum = 2}), td::InvalidArgumentError);
  EXPECT_THROW(SGD({.use_ema = true, .ema_overwrite_frequency = 0}), td::InvalidArgumentError);
}

TEST(Constraints, HoldAfterEachStep) {
  const keras::Sequential model{
      keras::Input({2}), keras::Dense(3, {.kernel_constraint = "non_neg",
                                          .bias_constraint = keras::constraints::MaxNorm(0.5)})};
  model.compile({.optimizer = SGD(10.0), .loss = "mse"});
  model.fit(td::random::normal({16, 2}), td::random::normal({16, 3}) * 10.0,
            {.epochs = 2, .verbose = keras::Verbose::kSilent});
  EXPECT_GE(td::reduce_min(model.weights()[0].read_value()).item<float>(), 0);
  const Tensor norm = td::norm(model.weights()[1].read_value());
  EXPECT_LE(norm.item<float>(), 0.5001);
  const keras::Model again = keras::model_from_json(model.to_json());
  EXPECT_EQ(again.layers()[0].config().to_string(), model.layers()[0].config().to_string());
}

}  // namespace
