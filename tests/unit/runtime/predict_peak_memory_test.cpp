// What a call takes of each device's memory is known before the first one.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

namespace tandem {
namespace {

using Step = std::function<void(const std::vector<Tensor>&)>;

// For the first call, which makes what the later ones find. Of what the calls add alone: the rest
// is in use before.
void expect_known(const Runtime& runtime, const ConcreteFunction& traced,
                  const std::vector<Tensor>& args, const Step& step) {
  constexpr double kSmall = 64 * 1024, kOff = 16 * 1024;
  std::vector<std::size_t> before;
  for (const auto& device : runtime.devices())
    before.push_back(device->allocator().stats().current);
  for (int call = 1; call <= 3; ++call) {
    const auto predicted = config::predict_peak_memory(traced, args);
    ASSERT_EQ(predicted.size(), before.size());
    for (const auto& device : runtime.devices()) device->allocator().reset_peak();
    step(args);
    for (std::size_t d = 0; d < predicted.size(); ++d) {
      Device& device = *runtime.devices()[d];
      EXPECT_EQ(predicted[d].device, device.name());
      const auto measured = static_cast<double>(device.allocator().stats().peak - before[d]);
      const auto reported = static_cast<double>(predicted[d].bytes - before[d]);
      EXPECT_NEAR(reported, measured, measured > kSmall ? 0.05 * measured : kOff)
          << predicted[d].device << ", call " << call;
    }
  }
}

// A machine with one CPU, and perhaps emulated GPUs.
class PredictedPeak : public ::testing::TestWithParam<std::string> {
 protected:
  PredictedPeak()
      : runtime_({.inter_op_threads = 2, .intra_op_threads = 2, .devices = {.emulate = gpus()}}),
        scope_(runtime_) {
    keras::utils::set_random_seed(1);
  }
  static std::vector<std::string> gpus() {
    return GetParam().empty() ? std::vector<std::string>{} : std::vector<std::string>{GetParam()};
  }

  template <class Function, class... Args>
  void expect_call_known(const Function& f, const Args&... args) {
    expect_known(runtime_, f.concrete(args...), {args...}, [&](const auto&) { f(args...); });
  }

  // One step of an optimizer for a model of one input.
  template <class Model, class Loss>
  void expect_training_known(const Model& model, const Loss& loss_of,
                             const std::vector<Tensor>& batch,
                             const keras::optimizers::AdamOptions& options = {}) {
    const keras::optimizers::Adam optimizer(options);
    const auto weights = model.trainable_weights();
    optimizer.build(weights);
    const auto step = function([&](Tensor x, Tensor y) {
      GradientTape tape;
      const Tensor loss = loss_of(y, model(x, {.training = true}));
      optimizer.apply(tape.gradient(loss, weights), weights);
      return loss;
    });
    expect_call_known(step, batch[0], batch[1]);
  }

  Runtime runtime_;
  RuntimeScope scope_;
};

INSTANTIATE_TEST_SUITE_P(Machines, PredictedPeak,
                         ::testing::Values("", "GPU:1,memory=256MiB,latency=0us"),
                         [](const auto& machine) { return machine.param.empty() ? "Cpu" : "Gpu"; });

// Pictures of 8x8 pixels and their labels.
std::vector<Tensor> digits(int n) {
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < n; ++i) {
    for (int p = 0; p < 64; ++p) pixels.push_back(static_cast<float>((i + p) % 17) / 16);
    labels.push_back(i % 10);
  }
  return {Tensor::from(pixels, {n, 8, 8, 1}), Tensor::from(labels, {n})};
}

keras::Sequential demo_model() {
  using namespace keras;
  return Sequential{Input({8, 8, 1}),
                    Conv2D(32, 3, {.padding = "same", .activation = "relu"}),
                    Conv2D(32, 3, {.padding = "same", .activation = "relu"}),
                    MaxPooling2D(),
                    Conv2D(64, 3, {.padding = "same", .activation = "relu"}),
                    Flatten(),
                    Dropout(0.4),
                    Dense(10, {.activation = "softmax"})};
}

TEST_P(PredictedPeak, OfTheDemo) {
  const keras::losses::SparseCategoricalCrossentropy loss_of;
  expect_training_known(demo_model(), loss_of, digits(32), {.learning_rate = 0.002});
  expect_training_known(demo_model(), loss_of, digits(256), {.learning_rate = 0.002});
}

TEST_P(PredictedPeak, OfPrediction) {
  const keras::Sequential model = demo_model();
  const auto predict = function([&](Tensor x) { return model(x); });
  expect_call_known(predict, digits(256)[0]);
}

TEST_P(PredictedPeak, OfACustomTrainingLoop) {
  using namespace keras;
  const Sequential model{Input({8, 8, 1}), Flatten(), Dense(64, {.activation = "relu"}),
                         Dropout(0.2), Dense(10)};
  const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  const optimizers::Adam optimizer({.clipnorm = 1.0});
  const metrics::Mean mean_loss;
  const metrics::SparseCategoricalAccuracy accuracy;
  const auto weights = model.trainable_weights();
  optimizer.build(weights);
  const auto step = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    const Tensor logits = model(x, {.training = true});
    const Tensor loss = loss_of(y, logits);
    optimizer.apply(tape.gradient(loss, weights), weights);
    mean_loss.update_state(loss);
    accuracy.update_state(y, logits);
  });
  const std::vector<Tensor> batch = digits(32);
  expect_call_known(step, batch[0], batch[1]);
}

TEST_P(PredictedPeak, OfATransformer) {
  using namespace keras;
  constexpr int kTokens = 11, kLength = 10, kWidth = 32, kBatch = 64;
  const KerasTensor tokens = Input({kLength}, {.dtype = int32});
  KerasTensor x = Embedding(kTokens, kWidth)(tokens);
  for (int i = 0; i < 2; ++i) {
    const KerasTensor seen = MultiHeadAttention(4, kWidth / 4)(x, x, {.use_causal_mask = true});
    const KerasTensor y = LayerNormalization()(Add()({x, seen}));
    const KerasTensor inner = Dense(4 * kWidth, {.activation = "gelu"})(y);
    x = LayerNormalization()(Add()({y, Dense(kWidth)(inner)}));
  }
  const Model model(tokens, Dense(kTokens, {.activation = "softmax"})(x), "reverser");
  std::vector<std::int32_t> text;
  for (int i = 0; i < kBatch * kLength; ++i) text.push_back(i % kTokens);
  const Tensor batch = Tensor::from(text, {kBatch, kLength});
  expect_training_known(model, losses::SparseCategoricalCrossentropy(), {batch, batch});
}

// A loop, whose values the gradient's loop reads.
TEST_P(PredictedPeak, OfARecurrentNetwork) {
  using namespace keras;
  const KerasTensor in = Input({20, 8});
  const Model model(in, Dense(4)(LSTM(32)(in)), "recurrent");
  expect_training_known(model, losses::MeanSquaredError(), {ones({64, 20, 8}), ones({64, 4})});
  const KerasTensor all = Input({20, 8});
  const Model tagger(all, Dense(4)(GRU(32, {.return_sequences = true})(all)), "tagger");
  expect_training_known(tagger, losses::MeanSquaredError(), {ones({64, 20, 8}), ones({64, 20, 4})});
}

TEST_P(PredictedPeak, OfTheBranchThatIsTaken) {
  const auto make = [] {
    return function([](Tensor which, Tensor x) {
      return switch_case(which, std::vector<std::function<Tensor()>>{
                                    [&] { return reduce_sum(x); },
                                    [&] { return reduce_sum(matmul(matmul(x, x), x)); }});
    });
  };
  const Tensor x = Tensor::from(std::vector<float>(256 * 256, 1.0f), {256, 256});
  const auto step = make();
  expect_call_known(step, Tensor(0), x);
  expect_call_known(step, Tensor(1), x);

  // The larger branch counts where the choice is unknown.
  const auto other = make();
  const ConcreteFunction traced = other.concrete(Tensor(0), x);
  const std::size_t device = runtime_.devices().size() - 1;
  const auto bytes = [&](const std::vector<config::DevicePeak>& peaks) {
    return peaks.at(device).bytes;
  };
  const std::size_t smaller = bytes(config::predict_peak_memory(traced, {Tensor(0), x}));
  const std::size_t larger = bytes(config::predict_peak_memory(traced, {Tensor(1), x}));
  EXPECT_GT(larger, smaller + 256 * 256 * 4);
  const double argument = device == 0 ? 256 * 256 * 4 : 0;  // that is made for the question
  EXPECT_NEAR(static_cast<double>(bytes(config::predict_peak_memory(traced))),
              static_cast<double>(larger) + argument, 64 * 1024);
}

// A machine with one CPU and two emulated GPUs.
class PredictedPeakOfTwo : public ::testing::Test {
 protected:
  PredictedPeakOfTwo()
      : runtime_(
            {.intra_op_threads = 2, .devices = {.emulate = {"GPU:2,memory=64MiB,latency=0us"}}}),
        scope_(runtime_) {}
  Runtime runtime_;
  RuntimeScope scope_;
};

TEST_F(PredictedPeakOfTwo, IsKnownOfEachDevice) {
  Variable w;
  {
    DeviceScope on("/GPU:0");
    w = Variable(ones({256, 512}));
  }
  auto step = function([&](Tensor x) {
    GradientTape tape;
    const Tensor y = nn::relu(matmul(x, w));
    const Tensor loss = reduce_mean(square(y));
    w.assign_sub(tape.gradient(loss, w) * 0.01f);
    DeviceScope on("/GPU:1");
    return reduce_sum(y * 2.0f);
  });
  const std::vector<Tensor> args{ones({64, 256})};
  const auto predicted = config::predict_peak_memory(step.concrete(args[0]), args);
  ASSERT_EQ(predicted.size(), 3u);
  for (std::size_t d = 1; d < 3; ++d) runtime_.devices()[d]->allocator().reset_peak();
  step(args[0]);
  for (std::size_t d = 1; d < 3; ++d) {
    EXPECT_EQ(predicted[d].device, runtime_.devices()[d]->name());
    const auto measured = static_cast<double>(runtime_.devices()[d]->allocator().stats().peak);
    EXPECT_NEAR(static_cast<double>(predicted[d].bytes), measured, 0.05 * measured)
        << predicted[d].device;
  }
}

// The host's blocks are of certain sizes, which count.
TEST_F(PredictedPeakOfTwo, IsKnownOfTheHost) {
  const Tensor w = ones({512, 512}), x = ones({256, 512});
  auto step = function([](Tensor a, Tensor b) { return matmul(matmul(a, b), b); });
  const std::vector<Tensor> args{x, w};
  DeviceScope on("/CPU:0");
  Allocator& memory = runtime_.devices()[0]->allocator();
  const auto predicted = config::predict_peak_memory(step.concrete(x, w), args);
  const std::size_t before = memory.stats().current;
  memory.reset_peak();
  step(x, w);
  const auto measured = static_cast<double>(memory.stats().peak - before);
  EXPECT_GE(measured, 2.0 * 256 * 512 * 4);
  EXPECT_NEAR(static_cast<double>(predicted[0].bytes - before), measured, 0.02 * measured);
  const std::vector<Tensor> wrong{x, x};
  EXPECT_THROW(config::predict_peak_memory(step.concrete(x, w), wrong), InvalidArgumentError);
  EXPECT_EQ(config::predict_peak_memory(step.concrete(x, w), {x, w})[0].bytes, predicted[0].bytes);
}

TEST_F(PredictedPeakOfTwo, IsKnownBeforeThereAreArguments) {
  auto step = function([](Tensor a, Tensor b) { return matmul(matmul(a, b), b); });
  const ConcreteFunction traced = step.concrete(ones({256, 512}), ones({512, 512}));
  DeviceScope on("/CPU:0");
  const std::size_t predicted = config::predict_peak_memory(traced)[0].bytes;
  Allocator& memory = runtime_.devices()[0]->allocator();
  memory.reset_peak();
  step(ones({256, 512}), ones({512, 512}));
  const auto measured = static_cast<double>(memory.stats().peak);
  EXPECT_NEAR(static_cast<double>(predicted), measured, 0.02 * measured);
  auto any = function([](Tensor a) { return matmul(a, a); }, {.input_shapes = {{-1, -1}}});
  EXPECT_THROW(config::predict_peak_memory(any.concrete(ones({2, 2}))), InvalidArgumentError);
}

// The same model on each of two devices, trained on half of every batch each.
TEST_F(PredictedPeakOfTwo, IsKnownOfDataParallelSteps) {
  using namespace keras;
  utils::set_random_seed(1);
  const std::vector<std::string> gpus{"/GPU:0", "/GPU:1"};
  const losses::SparseCategoricalCrossentropy loss_of({.from_logits = true});
  std::vector<Sequential> models;
  std::vector<optimizers::SGD> optimizers;
  for (const std::string& gpu : gpus) {
    const DeviceScope on(gpu);
    models.push_back(
        Sequential{Input({8, 8, 1}), Conv2D(16, 3, {.activation = "relu"}), Flatten(), Dense(10)});
    optimizers.push_back(optimizers::SGD({.learning_rate = 0.05, .momentum = 0.9}));
    optimizers.back().build(models.back().trainable_weights());
  }
  const auto step = function([&](Tensor x, Tensor y) {
    const auto xs = split(x, 2), ys = split(y, 2);
    std::vector<std::vector<Tensor>> grads;
    for (std::size_t r = 0; r < 2; ++r) {
      const DeviceScope on(gpus[r]);
      GradientTape tape;
      const Tensor loss = loss_of(ys[r], models[r](xs[r], {.training = true}));
      grads.push_back(tape.gradient(loss, models[r].trainable_weights()));
    }
    for (std::size_t w = 0; w < grads[0].size(); ++w) {
      const auto mean = all_reduce({grads[0][w], grads[1][w]}, gpus, tandem::Reduction::kMean);
      for (std::size_t r = 0; r < 2; ++r) grads[r][w] = mean[r];
    }
    for (std::size_t r = 0; r < 2; ++r) {
      const DeviceScope on(gpus[r]);
      optimizers[r].apply(grads[r], models[r].trainable_weights());
    }
  });
  const std::vector<Tensor> batch = digits(64);
  expect_known(runtime_, step.concrete(batch[0], batch[1]), batch,
               [&](const auto& a) { step(a[0], a[1]); });
}

// The simulator's memory knows what the plan reuses: what nothing reads later is written over, also
// where others have read it before.
TEST(ExplainedPeak, IsThePredictedOne) {
  Runtime runtime({.devices = {.emulate = {"GPU:1,memory=256MiB"}}});
  RuntimeScope scope(runtime);
  const auto step = function([](const Tensor& x) {
    const Tensor y = matmul(x, x), z = nn::relu(y) * y;
    return reduce_sum(reduce_mean(z, 0)) + reduce_sum(z + y);
  });
  const Tensor x = ones({1024, 1024});
  const std::vector<config::DevicePeak> peaks = config::predict_peak_memory(step.concrete(x), {x});
  const Explanation explanation = explain(step, x);
  EXPECT_NEAR(explanation.devices.at(1).memory_peak / static_cast<double>(peaks.at(1).bytes), 1,
              0.05);
}

}  // namespace
}  // namespace tandem
