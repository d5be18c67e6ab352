// What training steps ask of the driver, on a device GPU:0 whose kernels run on the host.

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/cuda/stand_in_driver.h"

namespace tandem::keras {
namespace {

// Before these, a segment's graphs are not made yet.
constexpr int kWarmUp = 12, kSteps = 10;

struct Asked {
  double calls, graph_launches;  // of a step
};

Asked asked_by_steps(const Model& model, const Tensor& x, const Tensor& y) {
  model.compile({.optimizer = "adam", .loss = "sparse_categorical_crossentropy"});
  for (int i = 0; i < kWarmUp; ++i) model.train_on_batch(x, y);
  const long long calls = driver().calls(), launches = driver().graph_launches();
  for (int i = 0; i < kSteps; ++i) model.train_on_batch(x, y);
  return {static_cast<double>(driver().calls() - calls) / kSteps,
          static_cast<double>(driver().graph_launches() - launches) / kSteps};
}

// The graph's launch with the batch and the loss in it, an event behind it, and waiting for that.
constexpr double kMaxCalls = 4;

TEST(CapturedStep, OfAnMlpIsOneGraph) {
  Sequential model{Input({12}), Dense(8, {.activation = "relu"}),
                   Dense(3, {.activation = "softmax"})};
  const Asked asked = asked_by_steps(model, ones({4, 12}), Tensor{0, 1, 2, 1});
  EXPECT_LE(asked.calls, kMaxCalls);
  EXPECT_EQ(asked.graph_launches, 1);
}

TEST(CapturedStep, OfACnnIsOneGraph) {
  Sequential model{Input({8, 8, 1}), Conv2D(2, 3, {.activation = "relu"}), MaxPooling2D(),
                   Flatten(), Dense(3, {.activation = "softmax"})};
  const Asked asked = asked_by_steps(model, ones({2, 8, 8, 1}), Tensor{0, 2});
  EXPECT_LE(asked.calls, kMaxCalls);
  EXPECT_EQ(asked.graph_launches, 1);
}

TEST(CapturedStep, OfATransformerIsOneGraph) {
  const KerasTensor tokens = Input({4}, {.dtype = int32});
  const KerasTensor x = Embedding(6, 4)(tokens);
  const KerasTensor attended = MultiHeadAttention(2, 2)(x, x, {.use_causal_mask = true});
  const KerasTensor y = LayerNormalization()(Add()(std::vector<KerasTensor>{x, attended}));
  const Model model(tokens, Dense(6, {.activation = "softmax"})(y));
  const Tensor words = Tensor::from(std::vector<std::int32_t>{0, 1, 2, 3, 5, 4, 3, 2}, {2, 4});
  const Asked asked = asked_by_steps(model, words, words);
  EXPECT_LE(asked.calls, kMaxCalls);
  EXPECT_EQ(asked.graph_launches, 1);
}

// A metric whose result is computed on the host cannot be part of the step.
class HostMetric final : public MetricImpl {
 public:
  HostMetric() : MetricImpl("twice") { sum_ = add_variable("sum", {}); }
  void update_state(const Tensor&, const Tensor& y_pred, const Tensor&) override {
    sum_.assign_add(reduce_sum(y_pred));
  }
  Tensor result() const override { return Tensor(2 * sum_.read_value().item<float>()); }

 private:
  Variable sum_;
};

TEST(CapturedStep, ResultsOfMetricsMayBeComputedOnTheHost) {
  Sequential model{Input({4}), Dense(2, {.activation = "softmax"})};
  model.compile({.optimizer = "sgd",
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {Metric(std::make_shared<HostMetric>())}});
  for (int i = 0; i < 2; ++i) {
    const Logs logs = model.train_on_batch(ones({3, 4}), Tensor{0, 1, 1});
    EXPECT_NEAR(logs["twice"], 6, 1e-5);
  }
}

// As they are in the GPU's memory: host code cannot copy them.
TEST(CapturedStep, ForwardsManyValuesAtOnce) {
  for (const bool as_written : {false, true}) {
    config::optimizer::set_experimental_options({.disable_meta_optimizer = as_written});
    const auto f = function([](Tensor x) {
      const Tensor y = exp(x);
      const std::vector<Tensor> both = identity_n({y * 2.0f, y});
      return both[0] - both[1];
    });
    EXPECT_THAT(f(zeros({3})).to_vector<float>(), testing::Each(testing::FloatEq(1)));
  }
  config::optimizer::set_experimental_options({});
}

}  // namespace
}  // namespace tandem::keras
