// Arguments as users of Keras write them: by position, by name, as functions and as properties.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/error.h"
#include "tandem/keras/keras.h"
#include "tandem/ops/ops.h"

namespace tandem::keras {
namespace {

std::string argument(const Layer& layer, const char* name) {
  return std::get<std::string>(layer.config().at(name));
}

TEST(Position, OfLayersIsKeras) {
  const Tensor x{-2.0, 0.5, 8.0};
  EXPECT_EQ(LeakyReLU(0.25)(x).to_vector<float>(), (std::vector<float>{-0.5F, 0.5F, 8}));
  EXPECT_EQ(LeakyReLU(0.25, {.name = "leaky"}).name(), "leaky");
  EXPECT_EQ(ReLU(6.0)(x).to_vector<float>(), (std::vector<float>{0, 0.5F, 6}));
  EXPECT_EQ(ReLU(1)(x).to_vector<float>(), (std::vector<float>{0, 0.5F, 1}));
  EXPECT_FLOAT_EQ(ELU(0.5)(Tensor{-100.0}).item<float>(), -0.5F);
  EXPECT_EQ(Softmax(0)(ones({2, 4})).to_vector<float>(), std::vector<float>(8, 0.5F));
  EXPECT_EQ(Concatenate(0)({ones({1, 2}), ones({3, 2})}).shape(), (Shape{4, 2}));
  EXPECT_EQ(MaxPooling2D({2, 1})(ones({1, 4, 4, 1})).shape(), (Shape{1, 2, 4, 1}));
  EXPECT_EQ(MaxPooling2D(3, {.strides = 1})(ones({1, 4, 4, 1})).shape(), (Shape{1, 2, 2, 1}));
  EXPECT_EQ(MaxPooling2D({.pool_size = 4})(ones({1, 4, 4, 1})).shape(), (Shape{1, 1, 1, 1}));
  EXPECT_EQ(AveragePooling1D(2, {.padding = "same"})(ones({1, 5, 1})).shape(), (Shape{1, 3, 1}));
  EXPECT_EQ(CategoryEncoding(4)(Tensor{{1, 3}}).shape(), (Shape{1, 4}));
  EXPECT_LT(reduce_max(Hashing(3)(Tensor{"a", "b"})).item<int>(), 3);
  EXPECT_EQ(Discretization(std::vector<float>{0, 1})(Tensor{0.5}).item<int>(), 1);
  EXPECT_EQ(Normalization({.axis = {1}, .mean = {{1, 2}}, .variance = {{1, 4}}})(Tensor{{2.0, 4.0}})
                .to_vector<float>(),
            (std::vector<float>{1, 1}));
}

TEST(Position, AndNameTogetherAreRefused) {
  EXPECT_THROW(LeakyReLU(0.2, {.negative_slope = 0.1}), InvalidArgumentError);
  EXPECT_THROW(MaxPooling2D(2, {.pool_size = 3}), InvalidArgumentError);
  EXPECT_THROW(optimizers::Adam(1e-3, {.learning_rate = 1e-4}), InvalidArgumentError);
  EXPECT_NO_THROW(optimizers::Adam(1e-3, {.beta_1 = 0.5}));
}

TEST(Position, OfOptimizersAndSchedulesIsKeras) {
  const optimizers::Adam adam(1e-4, {.beta_1 = 0.5});
  EXPECT_FLOAT_EQ(adam.learning_rate, 1e-4);
  EXPECT_EQ(std::get<double>(adam.impl()->config().at("beta_1")), 0.5);
  const optimizers::SGD sgd(0.01, 0.9, true);
  EXPECT_EQ(std::get<double>(sgd.impl()->config().at("momentum")), 0.9);
  EXPECT_TRUE(std::get<bool>(sgd.impl()->config().at("nesterov")));
  const auto at = [](const LearningRateSchedule& schedule, double step) {
    return schedule(Tensor(step)).item<float>();
  };
  using namespace optimizers::schedules;
  EXPECT_FLOAT_EQ(at(ExponentialDecay(1e-3, 100, 0.9), 200), 1e-3 * 0.81);
  EXPECT_FLOAT_EQ(at(ExponentialDecay(1e-3, 100, 0.9, {.staircase = true}), 150), 9e-4);
  EXPECT_FLOAT_EQ(at(InverseTimeDecay(1.0, 10, 0.5, true), 25), 0.5);
  EXPECT_FLOAT_EQ(at(PolynomialDecay(1.0, 100, 0.0), 50), 0.5);
  EXPECT_FLOAT_EQ(at(PolynomialDecay(1.0, 100, 0.0, {.power = 2}), 50), 0.25);
  EXPECT_NEAR(at(CosineDecay(1.0, 100), 50), 0.5, 1e-6);
  EXPECT_FLOAT_EQ(at(CosineDecay(0.0, 100, {.warmup_target = 1.0, .warmup_steps = 10}), 5), 0.5);
  EXPECT_FLOAT_EQ(at(CosineDecayRestarts(1.0, 100), 100), 1.0);
  const optimizers::RMSprop scheduled(ExponentialDecay(0.5, 1, 0.5), {.rho = 0.8});
  EXPECT_FLOAT_EQ(scheduled.learning_rate, 0.5);
}

TEST(Position, OfLossesMetricsAndCallbacksIsKeras) {
  EXPECT_FLOAT_EQ(losses::BinaryCrossentropy(true)(Tensor{{1.0}}, Tensor{{0.0}}).item<float>(),
                  std::log(2.0F));
  EXPECT_FLOAT_EQ(losses::Huber(0.5)(Tensor{0.0}, Tensor{2.0}).item<float>(), 0.875F);
  metrics::Mean mean("loss");
  EXPECT_EQ(mean.name(), "loss");
  EXPECT_EQ(mean(3.0).item<float>(), 3);
  EXPECT_EQ(mean(5.0).item<float>(), 4) << "a call takes the values in and returns the result";
  EXPECT_EQ(metrics::TopKCategoricalAccuracy(2, {.name = "top2"}).name(), "top2");
  EXPECT_NO_THROW(callbacks::EarlyStopping("loss", {.patience = 3}));
}

TEST(Activations, AreTakenAsFunctionsAndSavedByName) {
  EXPECT_EQ(argument(Dense(1, {.activation = activations::relu}), "activation"), "relu");
  EXPECT_EQ(argument(Dense(1, {.activation = activations::gelu}), "activation"), "gelu");
  EXPECT_EQ(argument(Dense(1, {.activation = activations::tanh}), "activation"), "tanh");
  EXPECT_EQ(argument(Dense(1, {.activation = nn::relu}), "activation"), "relu");
  EXPECT_EQ(argument(Dense(1, {.activation = nn::softmax}), "activation"), "softmax");
  EXPECT_EQ(argument(Activation(sigmoid), "activation"), "sigmoid");
  EXPECT_EQ(argument(Dense(1, {.activation = [](const Tensor& x) { return x; }}), "activation"),
            "custom");
  const Tensor x{-1.0, 2.0};
  EXPECT_EQ(Activation(activations::leaky_relu)(x).to_vector<float>(),
            activations::leaky_relu(x).to_vector<float>());
  EXPECT_EQ(Activation(nn::swish)(x).to_vector<float>(), nn::swish(x).to_vector<float>());
  const auto input = Input({3});
  EXPECT_EQ(Model(input, activations::relu(Dense(2)(input)))(ones({4, 3})).shape(), (Shape{4, 2}));
}

TEST(Verbose, IsANumberAsInKeras) {
  const Sequential model{Input({2}), Dense(1)};
  model.compile({.loss = "mse"});
  const Tensor x = ones({4, 2}), y = ones({4, 1});
  testing::internal::CaptureStdout();
  model.fit(x, y, {.verbose = 0});
  model.evaluate(x, y, {.verbose = false});
  model.predict(x, {.verbose = 0});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  testing::internal::CaptureStdout();
  model.fit(x, y, {.verbose = 2});
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("loss"));
  EXPECT_THROW(model.fit(x, y, {.verbose = 3}), InvalidArgumentError);
  EXPECT_THROW(model.fit(x, y, {.verbose = "loud"}), InvalidArgumentError);
  EXPECT_NO_THROW(model.predict(x, {.verbose = "auto"}));
}

TEST(Dtypes, AreTakenAsTexts) {
  EXPECT_EQ(Input({1}, {.dtype = "string", .name = "text"}).dtype(), string);
  EXPECT_EQ(Input({1}, {.dtype = "int32"}).dtype(), int32);
  EXPECT_THROW(Input({1}, {.dtype = "int31"}), InvalidArgumentError);
  EXPECT_THROW(Input({1}, {.dtype = static_cast<const char*>(nullptr)}), InvalidArgumentError);
  EXPECT_EQ(Dense(1, {.dtype = "float64"}).compute_dtype(), float64);
}

TEST(Models, TakeTheirNameAndPartsByName) {
  const auto a = Input({2}), b = Input({3});
  const auto y = Dense(1)(Concatenate()({a, b}));
  EXPECT_EQ(Model({a, b}, y, {.name = "m"}).name(), "m");
  const Model model({.inputs = {a, b}, .outputs = y, .name = "parts"});
  EXPECT_EQ(model.name(), "parts");
  EXPECT_EQ(model({ones({4, 2}), ones({4, 3})}).shape(), (Shape{4, 1}));
  EXPECT_FALSE(Model(a, Dense(1)(a), {.trainable = false}).trainable);
  const models::Sequential sequential{Input({2}), Dense(1)};
  EXPECT_EQ(sequential.inputs().size(), 1U);
}

TEST(Models, EndAtALayerOfAnother) {
  const auto x = Input({4});
  const auto hidden = Dense(3, {.name = "hidden"})(x);
  const Model model(x, Dense(1)(hidden));
  const Model features(model.inputs(), model.get_layer("hidden").output());
  const Tensor batch = ones({2, 4});
  EXPECT_EQ(features(batch).shape(), (Shape{2, 3}));
  EXPECT_EQ(model.get_layer(2)(features(batch)).to_vector<float>(),
            model(batch).to_vector<float>());
  EXPECT_TRUE(model.outputs()[0].is_same(model.output()));
  EXPECT_TRUE(model.get_layer("hidden").input().is_same(x));

  const Sequential sequential{Input({4}), Dense(3, {.name = "first"}), Dense(1)};
  const Model beginning(sequential.inputs(), sequential.get_layer("first").output());
  EXPECT_EQ(beginning(batch).shape(), (Shape{2, 3}));
  EXPECT_THROW(Dense(1).output(), FailedPreconditionError);
}

TEST(Inputs, ByNameAreWrittenInBraces) {
  const auto a = Input({2}, {.name = "a"}), b = Input({3}, {.name = "b"});
  const Model model({a, b}, Dense(1, {.name = "y"})(Concatenate()({a, b})));
  model.compile({.loss = "mse"});
  const Tensor x = ones({4, 2}), z = ones({4, 3}), y = ones({4, 1});
  EXPECT_NO_THROW(model.fit({{"b", z}, {"a", x}}, {{"y", y}}, {.verbose = 0}));
  EXPECT_THROW(model.fit({{"b", z}, {"c", x}}, {{"y", y}}, {.verbose = 0}), InvalidArgumentError);
}

TEST(Schedules, AreLookedAtWithIntegers) {
  EXPECT_FLOAT_EQ(schedules::ExponentialDecay(0.1, 10, 0.5)(20).item<float>(), 0.025F);
  EXPECT_FLOAT_EQ(schedules::PiecewiseConstantDecay({10, 20}, {0.1, 0.01, 0.001})(15).item<float>(),
                  0.01F);
}

TEST(Properties, NamesOfOptimizersAndPathsOfWeights) {
  EXPECT_EQ(optimizers::Adam().name(), "adam");
  EXPECT_EQ(optimizers::Adam({.name = "fast"}).name(), "fast");
  EXPECT_EQ(Optimizer("sgd").name(), "sgd");
  const Sequential model{Input({2}), Dense(1, {.name = "last"})};
  EXPECT_EQ(model.weights()[0].path(), "last/kernel");
}

TEST(Properties, OfOptimizersAreReadAndAssigned) {
  optimizers::Adam adam(0.1), other(0.5);
  adam.learning_rate = 0.2;
  EXPECT_FLOAT_EQ(adam.learning_rate, 0.2F);
  EXPECT_FLOAT_EQ(adam.learning_rate(), 0.2F);
  adam.learning_rate = adam.learning_rate * 0.5;
  EXPECT_FLOAT_EQ(adam.learning_rate, 0.1F);
  adam.learning_rate = other.learning_rate;
  EXPECT_FLOAT_EQ(adam.learning_rate, 0.5F);
  other.learning_rate = 0.25;
  EXPECT_FLOAT_EQ(adam.learning_rate, 0.5F) << "a rate is assigned, not an optimizer";
  Optimizer handle = adam;
  handle = other;
  handle.learning_rate = 0.75;
  EXPECT_FLOAT_EQ(other.learning_rate, 0.75F);
  EXPECT_FLOAT_EQ(adam.learning_rate, 0.5F);
  adam.set_learning_rate(0.125);
  EXPECT_FLOAT_EQ(adam.learning_rate, 0.125F);
  const Sequential model{Input({2}), Dense(1)};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  model.optimizer().learning_rate = 0.03;
  EXPECT_FLOAT_EQ(model.optimizer().learning_rate, 0.03F);
  optimizers::SGD scheduled(schedules::CosineDecay(0.1, 10));
  EXPECT_THROW(scheduled.learning_rate = 1, FailedPreconditionError);
}

TEST(Properties, OfLayersAreReadAndAssigned) {
  Layer dense = Dense(2);
  dense.build({-1, 3});
  dense.trainable = false;
  EXPECT_FALSE(dense.trainable);
  EXPECT_FALSE(dense.trainable());
  EXPECT_TRUE(dense.trainable_weights().empty());
  Layer other = Dense(2), moved = Dense(3);
  other.trainable = dense.trainable;
  EXPECT_FALSE(other.trainable);
  other = moved;
  other.trainable = false;
  EXPECT_FALSE(moved.trainable) << "another handle of the layer";
  other.set_trainable(true);
  EXPECT_TRUE(moved.trainable);
  const Layer taken = std::move(moved);
  EXPECT_TRUE(taken.trainable);
  const Sequential model{Input({2}), Dense(1)};
  model.trainable = false;
  for (const Layer& layer : model.layers()) EXPECT_FALSE(layer.trainable);
  EXPECT_TRUE(model.trainable_weights().empty());
  EXPECT_THROW(static_cast<void>(bool(Layer().trainable)), FailedPreconditionError);
}

TEST(ApplyGradients, TakesZippedListsAndTwoLists) {
  const Variable w(1.0F), b(2.0F);
  const optimizers::SGD sgd(1.0);
  const std::vector<Tensor> gradients{Tensor(0.5F), Tensor(0.25F)};
  sgd.apply_gradients(zip(gradients, {w, b}));
  EXPECT_EQ(w.read_value().item<float>(), 0.5F);
  EXPECT_EQ(b.read_value().item<float>(), 1.75F);
  sgd.apply_gradients(gradients, {w, b});
  EXPECT_EQ(w.read_value().item<float>(), 0.0F);
  EXPECT_THROW(zip(gradients, {w}), InvalidArgumentError);
}

TEST(Applications, PreprocessInputsOfModels) {
  const auto x = Input({4, 4, 3});
  for (const auto* mode : {"caffe", "tf", "torch"}) {
    const Model model(x, applications::imagenet_utils::preprocess_input(x, {.mode = mode}));
    const Tensor images = tandem::random::uniform({2, 4, 4, 3}, 0, 255);
    EXPECT_TRUE(bool(reduce_all(abs(model(images) - applications::imagenet_utils::preprocess_input(
                                                        images, {.mode = mode})) < 1e-4)))
        << mode;
  }
  EXPECT_EQ(applications::mobilenet_v2::preprocess_input(x).shape(), x.shape());
  EXPECT_TRUE(applications::convnext::preprocess_input(x).is_same(x));
}

TEST(Callbacks, AreCopiedIntoOptions) {
  const auto tensor_board = callbacks::TensorBoard(testing::TempDir() + "board");
  const auto csv = callbacks::CSVLogger(testing::TempDir() + "log.csv");
  const Sequential model{Input({2}), Dense(1)};
  model.compile({.loss = "mse"});
  EXPECT_NO_THROW(
      model.fit(ones({4, 2}), ones({4, 1}), {.verbose = 0, .callbacks = {tensor_board, csv}}));
}

TEST(Null, InListsOfTextsIsAnInvalidArgument) {
  const char* const null = nullptr;
  EXPECT_THROW(StringLookup({.vocabulary = {"a", null}}), InvalidArgumentError);
  EXPECT_THROW(TextVectorization({.vocabulary = {null}}), InvalidArgumentError);
  EXPECT_THROW(call("LeakyRelu", {Tensor(1.0)}, {{null, 0.5F}}), InvalidArgumentError);
  EXPECT_EQ(call("LeakyRelu", {Tensor(-1.0)}, {{"alpha", 0.5F}})[0].item<float>(), -0.5F);
}

TEST(ClearSession, IsInTheBackendToo) {
  backend::clear_session();
  EXPECT_EQ(Dense(1).name(), "dense");
}

}  // namespace
}  // namespace tandem::keras
