// Steps of a model's own, losses that layers add, and inputs and outputs by name.
#include <cmath>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/tandem.h"

namespace td = tandem;

namespace {

namespace keras = td::keras;
using td::Tensor;

float number(const Tensor& t) { return t.item<float>(); }

// Learns x · w with a loop of its own, and counts steps in a metric.
class OwnTraining final : public keras::ModelImpl {
 public:
  OwnTraining() : ModelImpl("OwnTraining"), dense_(add_layer(keras::Dense(1))) {}
  Tensor call(const Tensor& x, bool) override { return dense_(x); }
  StepResults train_step(const td::data::Element& batch) override {
    td::GradientTape tape;
    const Tensor loss = td::reduce_mean(td::square(dense_(batch[0]) - batch[1]));
    const std::vector<td::Variable> weights = trainable_variables();
    optimizer().apply(tape.gradient(loss, weights), weights);
    seen_.update_state(loss);
    return {{"my_loss", seen_.result()}, {"double", loss * 2.0}};
  }
  StepResults test_step(const td::data::Element& batch) override {
    return {{"error", td::reduce_mean(td::abs(dense_(batch[0]) - batch[1]))}};
  }
  std::vector<Tensor> predict_step(const std::vector<Tensor>& x) override {
    return {dense_(x[0]) * 0.0 + 7.0};
  }
  std::vector<keras::Metric> metrics() const override { return {seen_}; }

 private:
  keras::Layer dense_;
  keras::metrics::Mean seen_{{.name = "my_loss"}};
};

TEST(OwnSteps, ReplaceWhatFitEvaluateAndPredictDo) {
  keras::utils::set_random_seed(1);
  auto model = keras::make_model<OwnTraining>();
  model.compile({.optimizer = keras::optimizers::SGD(0.1)});
  const Tensor x = td::random::normal({64, 3}), y = td::reduce_sum(x, {1}, true);
  const keras::History history = model.fit(x, y, {.epochs = 5, .verbose = keras::Verbose::kSilent});
  ASSERT_EQ(history["my_loss"].size(), 5U);
  EXPECT_LT(history["my_loss"].back(), history["my_loss"].front() / 10);
  EXPECT_GT(history["double"].back(), 0);
  const keras::Logs logs = model.evaluate(x, y, {.verbose = keras::Verbose::kSilent});
  EXPECT_LT(logs["error"], 0.5);
  EXPECT_EQ(logs.find("loss"), std::nullopt);
  EXPECT_EQ(number(model.predict(x, {.verbose = keras::Verbose::kSilent})[0][0]), 7);
}

// Uses the compiled loss and metrics in a step of its own.
class CompiledParts final : public keras::ModelImpl {
 public:
  CompiledParts() : ModelImpl("CompiledParts"), dense_(add_layer(keras::Dense(1))) {}
  Tensor call(const Tensor& x, bool) override { return dense_(x); }
  StepResults train_step(const td::data::Element& batch) override {
    td::GradientTape tape;
    const Tensor y = dense_(batch[0]);
    const Tensor loss = compute_loss(batch[1], y);
    const std::vector<td::Variable> weights = trainable_variables();
    optimizer().apply(tape.gradient(loss, weights), weights);
    update_metrics(batch[1], y, loss);
    return {};
  }

 private:
  keras::Layer dense_;
};

TEST(OwnSteps, TakeTheCompiledLossAndMetrics) {
  const Tensor x = td::random::normal({32, 3}), y = td::reduce_sum(x, {1}, true);
  auto own = keras::make_model<CompiledParts>();
  const keras::Sequential plain{keras::Input({3}), keras::Dense(1)};
  own.build({-1, 3});
  own.set_weights(plain.get_weights());
  std::vector<double> losses;
  for (const keras::Model& model : {own, keras::Model(plain)}) {
    model.compile({.optimizer = keras::optimizers::SGD(0.1), .loss = "mse", .metrics = {"mae"}});
    const keras::History history =
        model.fit(x, y, {.epochs = 3, .verbose = keras::Verbose::kSilent, .shuffle = false});
    losses.push_back(history["loss"].back());
    losses.push_back(history["mae"].back());
  }
  EXPECT_NEAR(losses[0], losses[2], 1e-6);
  EXPECT_NEAR(losses[1], losses[3], 1e-6);
}

class AddsLoss final : public keras::LayerImpl {
 public:
  AddsLoss() : LayerImpl("AddsLoss") { without_weights(); }
  Tensor call(const Tensor& x, bool) override {
    add_loss(td::reduce_mean(x));
    return x;
  }
};

TEST(AddLoss, IsAmongTheLossesOfTheLastCall) {
  const keras::Layer adds = keras::make_layer<AddsLoss>();
  const keras::Sequential model{keras::Input({2}), adds,
                                keras::Dense(1, {.kernel_regularizer = "l2"})};
  EXPECT_EQ(model.losses().size(), 1U);
  model(Tensor{{2.0, 4.0}});
  ASSERT_EQ(model.losses().size(), 2U);
  EXPECT_EQ(number(model.losses()[0]), 3);
  model(Tensor{{4.0, 4.0}});
  ASSERT_EQ(model.losses().size(), 2U);
  EXPECT_EQ(number(model.losses()[0]), 4);
  EXPECT_EQ(number(adds.losses()[0]), 4);
}

keras::Model two_ends() {
  const auto b = keras::Input({2}, {.name = "b"}), a = keras::Input({2}, {.name = "a"});
  const auto sum =
      keras::Dense(1, {.kernel_initializer = "ones", .name = "sum"})(keras::Concatenate()({b, a}));
  const auto doubled = keras::Rescaling(2, 0, {.name = "doubled"})(b);
  return keras::Model({b, a}, {sum, doubled});
}

TEST(Names, BringInputsAndOutputsIntoTheModelsOrder) {
  const keras::Model model = two_ends();
  model.compile({.optimizer = "sgd",
                 .loss = {{"sum", "mse"}, {"doubled", "mae"}},
                 .loss_weights = {{"doubled", 0.5}},
                 .metrics = {{"sum", {"mae"}}}});
  const Tensor a{{1.0, 1.0}, {2.0, 2.0}}, b{{0.0, 0.0}, {1.0, 1.0}};
  const Tensor sums{{2.0}, {6.0}}, doubles{{0.0, 0.0}, {2.0, 2.0}};
  const td::data::TensorMap x{{"a", a}, {"b", b}}, y{{"doubled", doubles}, {"sum", sums}};
  const auto silent = keras::Verbose::kSilent;
  const keras::Logs by_name = model.evaluate(x, y, {.verbose = silent});
  EXPECT_NEAR(by_name["loss"], 0, 1e-6);
  const keras::Logs in_order = model.evaluate({b, a}, {sums, doubles + 1.0}, {.verbose = silent});
  EXPECT_NEAR(in_order["doubled_loss"], 1, 1e-6);
  EXPECT_NEAR(in_order["loss"], 0.5, 1e-6);
  const auto elements =
      td::data::from_tensor_slices({{"a", a}, {"b", b}, {"s", sums}, {"d", doubles}})
          .map([](const td::data::TensorMap& e) {
            return std::pair(td::data::TensorMap{{"a", e.at("a")}, {"b", e.at("b")}},
                             td::data::TensorMap{{"doubled", e.at("d")}, {"sum", e.at("s")}});
          })
          .batch(2);
  EXPECT_NEAR(model.evaluate(elements, {.verbose = silent})["loss"], 0, 1e-6);
  model.fit(elements, {.epochs = 1, .verbose = silent});
  EXPECT_EQ(model.predict_all(x, {.verbose = silent}).size(), 2U);
  try {
    model.predict_all(td::data::TensorMap{{"a", a}, {"c", b}}, {.verbose = silent});
    FAIL();
  } catch (const td::InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'b'"));
  }
  EXPECT_THROW(model.compile({.loss = "mse", .loss_weights = {{"other", 1.0}}}),
               td::InvalidArgumentError);
}

// A step that ends the training when it has seen a batch.
class OneBatch final : public keras::ModelImpl {
 public:
  OneBatch() : ModelImpl("OneBatch"), dense_(add_layer(keras::Dense(1))) {}
  td::Tensor call(const td::Tensor& x, bool) override { return dense_(x); }
  StepResults train_step(const td::data::Element& batch) override {
    stop_training = true;
    return ModelImpl::train_step(batch);
  }

 private:
  keras::Layer dense_;
};

TEST(TrainStep, MaySetStopTraining) {
  const keras::Model model = keras::make_model<OneBatch>();
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const keras::History history =
      model.fit(td::ones({8, 2}), td::ones({8, 1}), {.batch_size = 2, .epochs = 5, .verbose = 0});
  EXPECT_EQ(history.epochs().size(), 1U);
  EXPECT_EQ(model.optimizer().iterations(), 1);
}

TEST(GetLayer, ByNameAndNumber) {
  const keras::Sequential model{keras::Input({3}), keras::Dense(2, {.name = "first"}),
                                keras::Dense(1, {.name = "second"})};
  EXPECT_EQ(model.get_layer(1).name(), "second");
  EXPECT_EQ(model.get_layer("first").name(), "first");
  EXPECT_THROW(model.get_layer(2), td::InvalidArgumentError);
}

}  // namespace
