// Whole models on a device GPU:0: training and inference come to what they come to on the CPU.
// Needs no more than a GPU, real or stood in for.

#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem::keras {
namespace {

constexpr int kSteps = 3;

struct Work {
  Model model;
  Tensor x, y;
  const char* optimizer = "adam";
};

// Losses of some steps, then what the trained model says of the same batch.
struct Results {
  std::vector<double> losses;
  std::vector<float> predictions;
};

Results results_on(const char* device, const std::function<Work()>& make) {
  const DeviceScope scope(device);
  const Work work = make();
  work.model.compile({.optimizer = work.optimizer, .loss = "sparse_categorical_crossentropy"});
  Results results;
  for (int i = 0; i < kSteps; ++i)
    results.losses.push_back(work.model.train_on_batch(work.x, work.y)["loss"]);
  const Tensor predictions = work.model.predict_on_batch(work.x);
  results.predictions = cast(predictions, float32).to_vector<float>();
  return results;
}

// Values that differ from place to place.
Tensor pattern(const Shape& shape) {
  const auto count = static_cast<float>(shape.num_elements());
  return reshape(sin(range(Tensor(0.0f), Tensor(count), Tensor(1.0f)) * 0.7f), shape);
}

// The same values in each run.
Initializer weights(int seed) { return initializers::GlorotUniform(seed); }

Work mlp() {
  const Sequential model{Input({20}),
                         Dense(16, {.activation = "relu", .kernel_initializer = weights(1)}),
                         Dense(5, {.activation = "softmax", .kernel_initializer = weights(2)})};
  return {model, pattern({8, 20}), Tensor{0, 1, 2, 3, 4, 0, 1, 2}};
}

Work cnn() {
  const Sequential model{Input({12, 12, 3}),
                         Conv2D(4, 3, {.activation = "relu", .kernel_initializer = weights(3)}),
                         BatchNormalization(),
                         MaxPooling2D(),
                         Flatten(),
                         Dense(3, {.activation = "softmax", .kernel_initializer = weights(4)})};
  return {model, pattern({4, 12, 12, 3}), Tensor{0, 1, 2, 1}, "sgd"};
}

Work lstm() {
  const Sequential model{
      Input({6, 5}),
      LSTM(8, {.kernel_initializer = weights(5), .recurrent_initializer = weights(6)}),
      Dense(3, {.activation = "softmax", .kernel_initializer = weights(7)})};
  return {model, pattern({4, 6, 5}), Tensor{0, 1, 2, 1}, "rmsprop"};
}

Work transformer() {
  const KerasTensor tokens = Input({6}, {.dtype = int32});
  KerasTensor x = Embedding(12, 8, {.embeddings_initializer = weights(8)})(tokens);
  for (int layer = 0; layer < 2; ++layer) {
    const KerasTensor attended = MultiHeadAttention(
        2, 4, {.kernel_initializer = weights(10 + layer)})(x, x, {.use_causal_mask = true});
    x = LayerNormalization()(Add()(std::vector<KerasTensor>{x, attended}));
    const KerasTensor inner =
        Dense(16, {.activation = "gelu", .kernel_initializer = weights(20 + layer)})(x);
    const KerasTensor outer = Dense(8, {.kernel_initializer = weights(30 + layer)})(inner);
    x = LayerNormalization()(Add()(std::vector<KerasTensor>{x, outer}));
  }
  const Model model(tokens,
                    Dense(12, {.activation = "softmax", .kernel_initializer = weights(9)})(x));
  const Tensor words =
      Tensor::from(std::vector<std::int32_t>{0, 3, 5, 7, 11, 2, 1, 4, 6, 8, 10, 9}, {2, 6});
  return {model, words, words};
}

// Two blocks of a residual network, the second of which halves the image.
Work residual() {
  const KerasTensor images = Input({16, 16, 3});
  KerasTensor x = Conv2D(8, 3, {.padding = "same", .kernel_initializer = weights(40)})(images);
  for (int i = 0; i < 2; ++i) {
    const int strides = i + 1;
    const auto normalized = [&](const KerasTensor& from, int size, int step, int seed) {
      return BatchNormalization()(
          Conv2D(8, size,
                 {.strides = step, .padding = "same", .kernel_initializer = weights(seed)})(from));
    };
    const KerasTensor side = strides == 1 ? x : normalized(x, 1, strides, 50);
    const KerasTensor inner = Activation("relu")(normalized(x, 3, strides, 51 + i));
    x = Activation("relu")(Add()({side, normalized(inner, 3, 1, 53 + i)}));
  }
  x = GlobalAveragePooling2D()(x);
  const Model model(images,
                    Dense(4, {.activation = "softmax", .kernel_initializer = weights(60)})(x));
  return {model, pattern({4, 16, 16, 3}), Tensor{0, 1, 2, 3}, "sgd"};
}

struct Case {
  const char* name;
  Work (*make)();
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class ModelsOnGpu : public testing::TestWithParam<Case> {
 protected:
  void TearDown() override { mixed_precision::set_global_policy("float32"); }

  static void compare(double loss_tolerance, double tolerance) {
    const Results expected = results_on("/CPU:0", GetParam().make);
    const Results computed = results_on("/GPU:0", GetParam().make);
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
      EXPECT_NEAR(computed.losses[i], expected.losses[i], loss_tolerance) << "step " << i;
    ASSERT_EQ(computed.predictions.size(), expected.predictions.size());
    for (std::size_t i = 0; i < expected.predictions.size(); ++i)
      EXPECT_NEAR(computed.predictions[i], expected.predictions[i], tolerance) << "element " << i;
  }
};

TEST_P(ModelsOnGpu, InFloat) { compare(1e-3, 2e-3); }
TEST_P(ModelsOnGpu, InMixedPrecision) {
  mixed_precision::set_global_policy("mixed_bfloat16");
  compare(0.05, 0.05);
}

// ---- Gradients that overflow ----

struct ScaledStep {
  double loss;
  float scale;
  std::int64_t counter, iterations;
  std::vector<float> weights;
};

// A batch of numbers that are infinite as 16-bit floats comes fourth, and once more sixth.
std::vector<ScaledStep> steps_that_overflow(const char* device) {
  const DeviceScope scope(device);
  const Sequential model{Input({20}),
                         Dense(16, {.activation = "relu", .kernel_initializer = weights(1)}),
                         Dense(4, {.kernel_initializer = weights(2)})};
  const optimizers::LossScaleOptimizer optimizer(
      optimizers::Adam({.learning_rate = 0.01}),
      {.initial_scale = 1024, .dynamic_growth_steps = 2});
  model.compile({.optimizer = optimizer, .loss = "mse"});
  const auto compiled = optimizers::LossScaleOptimizer::from(model.optimizer());
  const Tensor x = pattern({8, 20}), y = pattern({8, 4});
  std::vector<ScaledStep> steps;
  for (int i = 0; i < 9; ++i) {
    const bool overflows = i == 3 || i == 5;
    const double loss = model.train_on_batch(overflows ? x * 1e30f : x, y)["loss"];
    ScaledStep step{loss,
                    compiled.dynamic_scale().read_value().item<float>(),
                    compiled.step_counter().read_value().item<std::int64_t>(),
                    compiled.iterations(),
                    {}};
    for (const Variable& weight : model.trainable_weights()) {
      const std::vector<float> of_one = weight.read_value().to_vector<float>();
      step.weights.insert(step.weights.end(), of_one.begin(), of_one.end());
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

TEST(MixedFloat16OnGpu, AStepThatOverflowsIsLeftOut) {
  mixed_precision::set_global_policy("mixed_float16");
  const std::vector<ScaledStep> wanted = steps_that_overflow("/CPU:0");
  const std::vector<ScaledStep> got = steps_that_overflow("/GPU:0");
  mixed_precision::set_global_policy("float32");
  // Doubled after two steps, halved by each that overflows.
  const std::vector<float> scales{1024, 2048, 2048, 1024, 1024, 512, 512, 1024, 1024};
  const std::vector<std::int64_t> iterations{1, 2, 3, 3, 4, 4, 5, 6, 7};
  for (std::size_t i = 0; i < scales.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(got[i].scale, scales[i]);
    EXPECT_EQ(wanted[i].scale, scales[i]);
    EXPECT_EQ(got[i].counter, wanted[i].counter);
    EXPECT_EQ(got[i].iterations, iterations[i]);
    const bool overflows = i == 3 || i == 5;
    if (overflows) {
      EXPECT_EQ(got[i].weights, got[i - 1].weights);
      EXPECT_FALSE(std::isfinite(got[i].loss));
    } else {
      EXPECT_NEAR(got[i].loss, wanted[i].loss, 2e-2);
    }
    ASSERT_EQ(got[i].weights.size(), wanted[i].weights.size());
    for (std::size_t k = 0; k < got[i].weights.size(); ++k)
      EXPECT_NEAR(got[i].weights[k], wanted[i].weights[k], 2e-2) << "weight " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ModelsOnGpu,
                         testing::Values(Case{"Mlp", mlp}, Case{"Cnn", cnn}, Case{"Lstm", lstm},
                                         Case{"Transformer", transformer},
                                         Case{"Residual", residual}),
                         [](const auto& network) { return std::string(network.param.name); });

}  // namespace
}  // namespace tandem::keras
