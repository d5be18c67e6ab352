#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

// Losses, metrics and optimizers as users name and mix them; their values are checked against the
// stored references.

namespace tandem::keras {
namespace {

using testing::HasSubstr;

// The error is thrown at the call, on an accelerator too.
template <class F>
std::string error_of(F&& f) {
  config::set_synchronous_execution(true);
  std::string text = "no InvalidArgumentError";
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    text = error.what();
  }
  config::set_synchronous_execution(false);
  return text;
}

Tensor column(std::initializer_list<double> values) { return expand_dims(Tensor(values), -1); }

TEST(Names, UnknownOnesListTheKnown) {
  EXPECT_THAT(error_of([] { Loss("msee"); }),
              HasSubstr("There is no loss 'msee'. Did you mean 'mse'? Choose one of bce"));
  EXPECT_THAT(error_of([] { Metric("acuracy"); }),
              HasSubstr("There is no metric 'acuracy'. Did you mean 'accuracy'? Choose one of"));
  EXPECT_THAT(error_of([] { Optimizer("addam"); }),
              HasSubstr("There is no optimizer 'addam'. Did you mean 'adam'? Choose one of"));
  EXPECT_THAT(error_of([] { Regularizer("l3"); }), HasSubstr("There is no regularizer 'l3'"));
  EXPECT_EQ(Loss("MeanSquaredError").name(), "mean_squared_error") << "class names do too";
}

TEST(Names, MetricsKeepTheNameThatWasUsed) {
  EXPECT_EQ(Metric("mse").name(), "mse");
  EXPECT_EQ(Metric("accuracy").name(), "accuracy");
  EXPECT_EQ(metrics::MeanSquaredError().name(), "mean_squared_error");
  EXPECT_EQ(metrics::MeanSquaredError({.name = "mine"}).name(), "mine");
}

TEST(Accuracy, IsChosenByTheShapes) {
  const auto value = [](const Tensor& y_true, const Tensor& y_pred) {
    const Metric accuracy("accuracy");
    accuracy.update_state(y_true, y_pred);
    return accuracy.result().item<float>();
  };
  EXPECT_EQ(value(column({1.0, 0.0}), column({0.9, 0.8})), 0.5f) << "binary";
  EXPECT_EQ(value(Tensor{1, 0}, Tensor{{0.1, 0.9}, {0.2, 0.8}}), 0.5f) << "sparse";
  EXPECT_EQ(value(expand_dims(Tensor{1, 0}, -1), Tensor{{0.1, 0.9}, {0.2, 0.8}}), 0.5f)
      << "sparse, a column";
  EXPECT_EQ(value(Tensor{{0.0, 1.0}, {1.0, 0.0}}, Tensor{{0.1, 0.9}, {0.2, 0.8}}), 0.5f)
      << "categorical";
}

TEST(Losses, StayAccurateForExtremeLogits) {
  // A probability that rounds to 0 has a finite loss when the loss sees the logits behind it.
  const Tensor logits{{100.0, 0.0}};
  const Loss loss = "sparse_categorical_crossentropy";
  const auto f =
      function([&](Tensor x) -> Tensor { return loss(Tensor{1}, activations::softmax(x)); });
  EXPECT_NEAR(f(logits).item<float>(), 100, 1e-3);
  EXPECT_NEAR(loss(Tensor{1}, nn::softmax(logits)).item<float>(), -std::log(1e-7), 0.1)
      << "else it is clipped";
  const Loss binary = "binary_crossentropy";
  const auto g =
      function([&](Tensor x) -> Tensor { return binary(column({0.0}), activations::sigmoid(x)); });
  EXPECT_NEAR(g(column({50.0})).item<float>(), 50, 1e-3);
}

TEST(Losses, ExplainShapesThatDoNotFit) {
  const Loss mse = "mse";
  EXPECT_THAT(error_of([&] {
                mse(zeros({4, 2}), zeros({4, 3}));
              }),
              HasSubstr("target.shape=(4, 2), output.shape=(4, 3) in mean_squared_error"));
  const Loss sparse = "sparse_categorical_crossentropy";
  EXPECT_THAT(error_of([&] { sparse(Tensor{0, 5}, fill({2, 3}, Tensor(0.3f))); }), HasSubstr("5"));
  EXPECT_THAT(error_of([&] { sparse(zeros({2, 3}), zeros({2, 3})); }), HasSubstr("one-hot"));
}

TEST(Losses, AndMetricsMayBeFunctions) {
  const Sequential model{Input({1}), Dense(1, {.kernel_initializer = "ones"})};
  model.compile(
      {.optimizer = "sgd",
       .loss = [](const Tensor& t, const Tensor& p) { return reduce_mean(square(t - p), -1) * 2; },
       .metrics = {"mse", [](const Tensor& t, const Tensor& p) { return abs(t - p); }}});
  const Logs logs = model.test_on_batch(column({1.0, 2.0}), column({0.0, 0.0}));
  EXPECT_NEAR(logs["loss"], 5, 1e-6);
  EXPECT_NEAR(logs["mse"], 2.5, 1e-6);
  EXPECT_NEAR(logs["metric"], 1.5, 1e-6);
}

TEST(Names, MeanAnotherObjectForEachModel) {
  const CompileOptions options{.optimizer = "adam", .loss = "mse", .metrics = {"mae"}};
  for (int i = 0; i < 2; ++i) {
    const Sequential model{Input({1}), Dense(1)};
    model.compile(options);
    EXPECT_TRUE(model.train_on_batch(column({1.0}), column({2.0})).find("mae"));
    EXPECT_EQ(model.optimizer().iterations(), 1);
  }
}

TEST(Optimizers, BelongToTheirWeights) {
  const optimizers::Adam adam;
  const Variable a(1.0f), b(2.0f);
  adam.apply({Tensor(1.0f)}, {a});
  EXPECT_EQ(adam.iterations(), 1);
  EXPECT_THAT(error_of([&] { adam.apply({Tensor(1.0f)}, {b}); }), HasSubstr("Unknown variable"));
  EXPECT_THAT(error_of([&] { adam.apply({Tensor()}, {a}); }),
              HasSubstr("No gradients provided for any variable"));
  EXPECT_THAT(error_of([&] { adam.apply({}, {a}); }), HasSubstr("0 gradients for 1 variables"));
}

TEST(Optimizers, CheckTheirArguments) {
  EXPECT_THAT(error_of([] { optimizers::SGD({.clipnorm = 1.0, .clipvalue = 1.0}); }),
              HasSubstr("Only one of"));
  EXPECT_THAT(error_of([] { optimizers::SGD({.momentum = 2.0}); }),
              HasSubstr("momentum must be from 0 to 1"));
  EXPECT_THAT(error_of([] { optimizers::Adam({.learning_rate = -1.0}); }),
              HasSubstr("learning rate"));
  EXPECT_THAT(error_of([] { optimizers::Adam({.clipvalue = 0.0}); }),
              HasSubstr("must be positive"));
  EXPECT_THAT(error_of([] {
                schedules::ExponentialDecay(
                    {.initial_learning_rate = 1, .decay_steps = 0, .decay_rate = 1});
              }),
              HasSubstr("`decay_steps` must be > 0"));
}

TEST(Optimizers, RateMayChangeBetweenSteps) {
  const Variable w(1.0f);
  const optimizers::SGD sgd({.learning_rate = 0.5});
  sgd.build({w});
  const auto step = function([&](Tensor g) { sgd.apply({g}, {w}); });
  step(Tensor(1.0f));
  EXPECT_FLOAT_EQ(w.read_value().item<float>(), 0.5f);
  sgd.set_learning_rate(0.25);
  step(Tensor(1.0f));
  EXPECT_FLOAT_EQ(w.read_value().item<float>(), 0.25f);
}

TEST(Optimizers, MayBeWrittenByTheUser) {
  class Sign final : public OptimizerImpl {
   public:
    Sign() : OptimizerImpl("Sign", {.learning_rate = 0.1}) {}
    void make_slots(const std::vector<Variable>&) override {}
    void update(std::size_t, const Variable& w, const Tensor& g, const Tensor& rate) override {
      w.assign_sub(sign(g) * rate);
    }
  };
  const Optimizer optimizer(std::make_shared<Sign>());
  const Variable w(1.0f);
  optimizer.apply({Tensor(-3.0f)}, {w});
  EXPECT_FLOAT_EQ(w.read_value().item<float>(), 1.1f);
}

}  // namespace
}  // namespace tandem::keras
