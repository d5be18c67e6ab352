#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem::keras {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

struct Data {
  Tensor x;
  Tensor y;
};

// Two clouds of points and the number of the cloud.
Data clouds(std::int64_t n) {
  const Tensor y =
      cast(random::uniform({n}, {.minval = 0, .maxval = 2, .dtype = int32, .seed = 5}), int32);
  const Tensor middle = reshape(cast(y, float32) * 4 - 2, {n, 1});
  return {random::normal({n, 2}, {.seed = 6}) + middle, y};
}

Sequential classifier() {
  return Sequential{Input({2}), Dense(8, {.activation = "relu"}),
                    Dense(2, {.activation = "softmax"})};
}

// Made again each time: an optimizer and its state belong to one model.
CompileOptions classify() {
  return {.optimizer = "adam", .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"}};
}
constexpr Verbose kSilent = Verbose::kSilent;

TEST(Fit, Learns) {
  utils::set_random_seed(1);
  const Data data = clouds(400);
  const Sequential model = classifier();
  model.compile(classify());
  const History history =
      model.fit(data.x, data.y, {.epochs = 20, .verbose = kSilent, .validation_split = 0.25});
  EXPECT_EQ(history.epochs().size(), 20u);
  EXPECT_LT(history["loss"].back(), history["loss"].front());
  const std::map<std::string, std::vector<double>> by_name = history.history();
  EXPECT_EQ(by_name.size(), history.entries().size());
  for (const auto& [name, values] : by_name) EXPECT_EQ(values, history[name]) << name;
  EXPECT_EQ(by_name.at("loss").size(), history.epochs().size());
  EXPECT_GT(history["val_accuracy"].back(), 0.95);
  EXPECT_THAT(
      error_of([&] { history["acc"]; }),
      HasSubstr(
          "There is no 'acc' among the logs, which have: accuracy, loss, val_accuracy, val_loss"));
  const Logs logs = model.evaluate(data.x, data.y, {.verbose = kSilent});
  EXPECT_GT(logs["accuracy"], 0.95);
}

// Like Keras writes it.
TEST(Fit, TakesLayersByTheNameOfTheirModule) {
  const keras::layers::Dense last(2, {.activation = "softmax"});
  const Sequential model{layers::Input({2}), layers::Dense(8, {.activation = "relu"}), last};
  EXPECT_EQ(model.count_params(), 2 * 8 + 8 + 8 * 2 + 2);
}

TEST(Fit, RepeatsItselfForASeed) {
  const Data data = clouds(100);
  std::vector<Tensor> first;
  for (int run = 0; run < 2; ++run) {
    utils::set_random_seed(9);
    const Sequential model{Input({2}), Dense(8, {.activation = "relu"}), Dropout(0.3), Dense(2)};
    model.compile({.optimizer = "adam",
                   .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
    model.fit(data.x, data.y, {.epochs = 3, .verbose = kSilent});
    const std::vector<Tensor> weights = model.get_weights();
    if (run == 0) first = weights;
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_TRUE(all_equal(weights[i], first[i]));
  }
}

TEST(Fit, TakesDatasets) {
  const Data data = clouds(100);
  const auto rows = data::from_tensor_slices({data.x, data.y});
  const Sequential model = classifier();
  model.compile(classify());
  const History history = model.fit(
      rows.batch(32), {.epochs = 2, .verbose = kSilent, .validation_data = rows.batch(50)});
  EXPECT_EQ(history["val_loss"].size(), 2u);
  EXPECT_EQ(model.optimizer().iterations(), 8);
}

TEST(Fit, DoesNotGuessByNames) {
  const Data data = clouds(8);
  const auto named = data::from_tensor_slices({{"points", data.x}, {"cloud", data.y}}).batch(4);
  const Sequential model = classifier();
  model.compile(classify());
  EXPECT_THAT(error_of([&] { model.fit(named, {.verbose = kSilent}); }),
              HasSubstr("maps (cloud, points)"));
  EXPECT_THAT(error_of([&] { model.evaluate(named, {.verbose = kSilent}); }),
              HasSubstr("TensorMap"));
  const auto pairs =
      named.map([](data::TensorMap e) { return std::pair(e.at("points"), e.at("cloud")); });
  EXPECT_EQ(model.fit(pairs, {.verbose = kSilent}).epochs().size(), 1u);
}

TEST(Fit, GoesOnWithAnEndlessDataset) {
  const Data data = clouds(64);
  const auto rows = data::from_tensor_slices({data.x, data.y}).batch(16);
  const Sequential model = classifier();
  model.compile(classify());
  EXPECT_THAT(error_of([&] { model.fit(rows.repeat(), {.verbose = kSilent}); }),
              HasSubstr("`steps_per_epoch`"));
  model.fit(rows.repeat(), {.epochs = 3, .verbose = kSilent, .steps_per_epoch = 5});
  EXPECT_EQ(model.optimizer().iterations(), 15);
}

TEST(Fit, BeginsAtInitialEpoch) {
  const Data data = clouds(64);
  const Sequential model = classifier();
  model.compile(classify());
  EXPECT_THAT(
      model.fit(data.x, data.y, {.epochs = 5, .verbose = kSilent, .initial_epoch = 3}).epochs(),
      ElementsAre(3, 4));
  EXPECT_TRUE(model.fit(data.x, data.y, {.epochs = 2, .verbose = kSilent, .initial_epoch = 3})
                  .epochs()
                  .empty());
}

TEST(Fit, ValidatesAsOftenAsAsked) {
  const Data data = clouds(64);
  const Sequential model = classifier();
  model.compile(classify());
  const History history = model.fit(
      data.x, data.y,
      {.epochs = 5, .verbose = kSilent, .validation_data = {data.x, data.y}, .validation_freq = 2});
  EXPECT_EQ(history["val_loss"].size(), 2u);
  EXPECT_EQ(history["loss"].size(), 5u);
}

TEST(Fit, TrainsSeveralOutputs) {
  utils::set_random_seed(4);
  const Tensor x = random::normal({64, 3}, {.seed = 1});
  const Tensor sum = reduce_sum(x, -1, true);
  const Tensor sign = cast(sum > 0, float32);
  const KerasTensor in = Input({3});
  const KerasTensor h = Dense(8, {.activation = "tanh"})(in);
  const Model model(
      in, {Dense(1, {.name = "sum"})(h), Dense(1, {.activation = "sigmoid", .name = "sign"})(h)});
  model.compile({.optimizer = optimizers::Adam({.learning_rate = 0.02}),
                 .loss = {{"sum", "mse"}, {"sign", "binary_crossentropy"}},
                 .loss_weights = {1.0, 0.5},
                 .metrics = {{"sign", {"accuracy"}}}});
  const History history = model.fit(x, {sum, sign}, {.epochs = 40, .verbose = kSilent});
  EXPECT_GT(history["sign_accuracy"].back(), 0.9);
  EXPECT_NEAR(history["loss"].back(),
              history["sum_loss"].back() + 0.5 * history["sign_loss"].back(), 1e-3);
  EXPECT_EQ(model.predict_all(x, {.verbose = kSilent}).size(), 2u);
  EXPECT_THAT(error_of([&] { model.predict(x); }), HasSubstr("Use predict_all"));
  EXPECT_THAT(error_of([&] {
                model.compile({.loss = {{"summ", "mse"}}});
              }),
              HasSubstr("loss names the output 'summ', but the outputs of model"));
  EXPECT_THAT(error_of([&] {
                model.compile({.loss = {"mse", "mse", "mse"}});
              }),
              HasSubstr("3 losses are given for the 2"));
}

TEST(Fit, TraceIsMadeOncePerBatchShape) {
  const Data data = clouds(70);
  int calls = 0;
  const Sequential model{Input({2}), Activation([&](const Tensor& x) {
                           ++calls;
                           return x;
                         }),
                         Dense(2)};
  model.compile(
      {.optimizer = "sgd", .loss = losses::SparseCategoricalCrossentropy({.from_logits = true})});
  model.fit(data.x, data.y, {.verbose = kSilent});
  const int first = calls;
  model.fit(data.x, data.y, {.epochs = 10, .verbose = kSilent});
  EXPECT_EQ(calls, first);
}

TEST(Fit, EagerStepsDoTheSame) {
  const Data data = clouds(64);
  std::vector<Tensor> weights;
  for (const bool eagerly : {false, true}) {
    utils::set_random_seed(2);
    const Sequential model = classifier();
    CompileOptions options = classify();
    options.run_eagerly = eagerly;
    model.compile(options);
    model.fit(data.x, data.y, {.epochs = 2, .verbose = kSilent, .shuffle = false});
    if (weights.empty()) weights = model.get_weights();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_LT(reduce_max(abs(model.get_weights()[i] - weights[i])).item<float>(), 1e-5);
    }
  }
}

TEST(Fit, LeavesFrozenLayersAlone) {
  const Data data = clouds(64);
  const Sequential model = classifier();
  model.layers()[0].set_trainable(false);
  model.compile(classify());
  const std::vector<Tensor> before = model.get_weights();
  model.fit(data.x, data.y, {.verbose = kSilent});
  EXPECT_TRUE(all_equal(model.get_weights()[0], before[0]));
  EXPECT_FALSE(all_equal(model.get_weights()[2], before[2]));
  model.layers()[1].set_trainable(false);
  model.compile(classify());
  EXPECT_THAT(error_of([&] { model.fit(data.x, data.y, {.verbose = kSilent}); }),
              HasSubstr("no trainable weights"));
}

// Bad input: each is an error that says what to do, and the model works afterwards.
TEST(Fit, ExplainsBadInput) {
  const Data data = clouds(64);
  const Sequential model = classifier();
  EXPECT_THAT(error_of([&] { model.fit(data.x, data.y); }),
              HasSubstr("You must call `compile()` before"));
  model.compile(classify());
  const auto fit_error = [&](const Tensor& x, const Tensor& y, FitOptions o = {}) {
    o.verbose = kSilent;
    return error_of([&] { model.fit(x, y, o); });
  };
  EXPECT_THAT(fit_error(data.x, slice(data.y, {0}, {10})),
              HasSubstr("Data cardinality is ambiguous"));
  EXPECT_THAT(fit_error(zeros({0, 2}), zeros({0}, int32)), HasSubstr("There are no examples"));
  EXPECT_THAT(fit_error(Tensor(), data.y), HasSubstr("undefined tensor"));
  EXPECT_THAT(fit_error(data.x, data.y, {.batch_size = 0}),
              HasSubstr("batch_size must be positive"));
  EXPECT_THAT(fit_error(data.x, data.y, {.validation_split = 1.5}), HasSubstr("validation_split"));
  EXPECT_THAT(fit_error(data.x, data.y, {.epochs = -1}), HasSubstr("epochs must not be negative"));
  EXPECT_THAT(fit_error(zeros({64, 3}), data.y),
              HasSubstr("expected shape (None, 2), found shape"));
  EXPECT_THAT(fit_error(data.x, zeros({64, 2})),
              HasSubstr("For one-hot labels use categorical_crossentropy"));
  const std::string out_of_range = fit_error(data.x, fill({64}, Tensor(2)));
  EXPECT_THAT(out_of_range, HasSubstr("2"));
  EXPECT_THAT(out_of_range, HasSubstr("in fit of model"));
  const auto rows = data::from_tensor_slices({data.x, data.y});
  EXPECT_THAT(error_of([&] { model.fit(rows.take(0).batch(8), {.verbose = kSilent}); }),
              HasSubstr("is empty"));
  EXPECT_THAT(error_of([&] {
                model.fit(data::from_tensor_slices({data.x, data.y, data.y, data.y}).batch(8));
              }),
              HasSubstr("but it has 4 tensor(s)"));
  EXPECT_THAT(error_of([&] { model.fit(data::Dataset()); }), HasSubstr("undefined"));
  EXPECT_THAT(error_of([&] { model.evaluate(rows.take(0).batch(8), {.verbose = kSilent}); }),
              HasSubstr("empty"));
  const Sequential lossless = classifier();
  lossless.compile({.optimizer = "sgd"});
  EXPECT_THAT(error_of([&] { lossless.fit(data.x, data.y, {.verbose = kSilent}); }),
              HasSubstr("No loss to compute"));
  EXPECT_THAT(error_of([&] {
                model.fit({data.x, data.y}, ones({64}), {.verbose = kSilent});
              }),
              HasSubstr("has 1 input(s), but 2 tensors are given for x"));
  EXPECT_THAT(error_of([&] {
                model.fit(data.x, {data.y, ones({64})}, {.verbose = kSilent});
              }),
              HasSubstr("2 tensors are given for y"));
  EXPECT_THAT(error_of([&] { model.predict({data.x, data.x}); }), HasSubstr("1 input(s)"));
  EXPECT_GT(model.fit(data.x, data.y, {.verbose = kSilent})["loss"].size(), 0u)
      << "the model still works";
}

TEST(Fit, TakesIntegersForFloats) {
  const Data data = clouds(64);
  const Sequential model = classifier();
  model.compile(classify());
  const Tensor bytes = cast(abs(data.x) * 20, uint8);
  EXPECT_EQ(model.fit(bytes, data.y, {.verbose = kSilent})["loss"].size(), 1u);
  EXPECT_EQ(model.predict(bytes, {.verbose = kSilent}).to_vector<float>(),
            model.predict(cast(bytes, float32), {.verbose = kSilent}).to_vector<float>());
}

TEST(Fit, WarnsOfNaNOnce) {
  const Sequential model{Input({1}), Dense(1)};
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = fill({32, 1}, Tensor(std::numeric_limits<float>::quiet_NaN()));
  testing::internal::CaptureStderr();
  model.fit(x, x, {.epochs = 3, .verbose = kSilent});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("is NaN in epoch 1"));
  EXPECT_EQ(text.find("is NaN", text.find("is NaN") + 1), std::string::npos);
}

TEST(Fit, WeighsClasses) {
  // All examples are alike but for their labels: the prediction is the weighted share of class 1.
  const Tensor x = ones({40, 1});
  const Tensor y = concat({zeros({20, 1}), ones({20, 1})}, 0);
  const Sequential model{Input({1}), Dense(1, {.activation = "sigmoid"})};
  model.compile(
      {.optimizer = optimizers::SGD({.learning_rate = 0.5}), .loss = "binary_crossentropy"});
  model.fit(x, y,
            {.batch_size = 40, .epochs = 200, .verbose = kSilent, .class_weight = {{1, 3.0}}});
  EXPECT_NEAR(model(ones({1, 1})).item<float>(), 0.75, 0.01);
  EXPECT_THAT(error_of([&] {
                model.fit(
                    x, y,
                    {.verbose = kSilent, .class_weight = {{1, 3.0}}, .sample_weight = ones({40})});
              }),
              HasSubstr("at the same time"));
}

TEST(Fit, CountsLossesThatLayersAdd) {
  const Sequential model{Input({2}),
                         Dense(2, {.kernel_initializer = "ones", .activity_regularizer = "l2"})};
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.0}), .loss = "mse"});
  const Tensor x = ones({4, 2});
  // Outputs are 2: mse to 2 is 0, and the penalty 0.01 · 8 outputs · 4 / 4 examples.
  EXPECT_NEAR(model.train_on_batch(x, fill({4, 2}, Tensor(2.0f)))["loss"], 0.08, 1e-6);
}

TEST(Fit, PrintsALineForEachEpochWhenRedirected) {
  const Data data = clouds(64);
  const Sequential model = classifier();
  model.compile(classify());
  testing::internal::CaptureStdout();
  model.fit(data.x, data.y, {.epochs = 2, .verbose = Verbose::kLinePerEpoch});
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text, HasSubstr("Epoch 1/2\n2/2 - "));
  EXPECT_THAT(text, HasSubstr(" - accuracy: "));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  testing::internal::CaptureStdout();
  model.fit(data.x, data.y, {.verbose = Verbose::kProgressBar});
  const std::string bar = testing::internal::GetCapturedStdout();
  EXPECT_THAT(bar, HasSubstr("\r"));
  EXPECT_THAT(bar, HasSubstr("━━━━━━━━━━━━━━━━━━━━"));
  testing::internal::CaptureStdout();
  model.fit(data.x, data.y, {.verbose = kSilent});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace tandem::keras
