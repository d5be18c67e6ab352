#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tandem/ops/autocast.h>
#include <tandem/tandem.h>

#include "tests/unit/folder.h"

namespace tandem::keras {
namespace {

using optimizers::LossScaleOptimizer;
using optimizers::SGD;
using testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "no InvalidArgumentError was thrown";
}

// The policy of a test, float32 again afterwards.
class MixedPrecision : public testing::Test {
 protected:
  ~MixedPrecision() override { mixed_precision::set_global_policy("float32"); }
};

TEST_F(MixedPrecision, PoliciesNameTwoDtypes) {
  EXPECT_EQ(DTypePolicy().name(), "float32");
  const DTypePolicy mixed("mixed_bfloat16");
  EXPECT_EQ(mixed.compute_dtype(), bfloat16);
  EXPECT_EQ(mixed.variable_dtype(), float32);
  EXPECT_EQ(DTypePolicy("mixed_float16").compute_dtype(), float16);
  EXPECT_EQ(DTypePolicy("mixed_float16").variable_dtype(), float32);
  EXPECT_EQ(DTypePolicy("float16").variable_dtype(), float16);
  EXPECT_EQ(DTypePolicy(float64), DTypePolicy("float64"));
  EXPECT_EQ(DTypePolicy(bfloat16).name(), "bfloat16");
  for (const std::string& name : DTypePolicy::names()) EXPECT_EQ(DTypePolicy(name).name(), name);
}

TEST_F(MixedPrecision, UnknownPoliciesAreRefusedWithTheNearestName) {
  const std::string error = error_of([] { DTypePolicy("mixed_bfloat"); });
  EXPECT_THAT(error, HasSubstr("There is no dtype policy 'mixed_bfloat'"));
  EXPECT_THAT(error, HasSubstr("Did you mean 'mixed_bfloat16'?"));
  EXPECT_THAT(error, HasSubstr("mixed_float16, bfloat16"));
  EXPECT_THAT(error_of([] { Dense(3, {.dtype = "half"}); }), HasSubstr("dtype policy 'half'"));
  EXPECT_THAT(error_of([] { DTypePolicy policy(tandem::string); }), HasSubstr("string"));
  EXPECT_THAT(error_of([] { mixed_precision::set_global_policy("int32"); }),
              HasSubstr("floating-point"));
  EXPECT_EQ(mixed_precision::global_policy().name(), "float32");
}

TEST_F(MixedPrecision, TheGlobalPolicyIsThatOfLayersMadeFromThenOn) {
  const Dense before(2);
  mixed_precision::set_global_policy("mixed_bfloat16");
  EXPECT_EQ(mixed_precision::dtype_policy().name(), "mixed_bfloat16");
  const Dense after(2);
  const Dense reported(2, {.dtype = "float64"});
  mixed_precision::set_dtype_policy("float32");
  EXPECT_EQ(before.dtype_policy().name(), "float32");
  EXPECT_EQ(after.compute_dtype(), bfloat16);
  EXPECT_EQ(after.variable_dtype(), float32);
  EXPECT_EQ(reported.compute_dtype(), float64);
  EXPECT_THAT(after.describe(), HasSubstr("dtype='mixed_bfloat16'"));
  const Tensor x = ones({3, 4});
  EXPECT_EQ(before(x).dtype(), float32);
  EXPECT_EQ(after(x).dtype(), bfloat16);
  EXPECT_EQ(reported(x).dtype(), float64);
  EXPECT_EQ(after.weights()[0].dtype(), float32);
  EXPECT_EQ(reported.weights()[0].dtype(), float64);
}

TEST_F(MixedPrecision, LayersComputeInHalfAndKeepWeightsInFull) {
  const Dense dense(1, {.use_bias = false, .dtype = "mixed_bfloat16"});
  dense.build({-1, 1});
  const Tensor kernel = fill({1, 1}, Tensor(1.001));  // bfloat16 knows 1 and 1.0078125
  dense.set_weights({kernel});
  EXPECT_FLOAT_EQ(cast(dense(fill({1, 1}, Tensor(3.0))), float32).item<float>(), 3);
  EXPECT_TRUE(all_equal(dense.get_weights()[0], kernel));
}

TEST_F(MixedPrecision, GradientsArriveInTheDtypeOfTheWeights) {
  const Dense dense(2, {.dtype = "mixed_float16"});
  const auto gradients = [&](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = reduce_sum(cast(dense(x), float32));
    return tape.gradient(loss, dense.trainable_weights());
  };
  dense.build({-1, 3});
  for (const Tensor& g : gradients(ones({4, 3}))) {
    EXPECT_EQ(g.dtype(), float32);
    EXPECT_TRUE(all_equal(g, fill(g.shape(), Tensor(4.0))));
  }
  for (const Tensor& g : function(gradients)(ones({4, 3}))) EXPECT_EQ(g.dtype(), float32);
}

TEST_F(MixedPrecision, IntegersPassAndFloatsAreCast) {
  const Identity identity({.dtype = "mixed_bfloat16"});
  EXPECT_EQ(identity(Tensor{1, 2}).dtype(), int32);
  EXPECT_EQ(identity(Tensor{1.0}).dtype(), bfloat16);
  const Embedding embedding(1000, 2, {.dtype = "mixed_bfloat16"});
  const Tensor rows = embedding(Tensor{999, 257});
  EXPECT_EQ(rows.dtype(), bfloat16);
  const Tensor table = embedding.get_weights()[0];
  EXPECT_EQ(table.dtype(), float32);
  EXPECT_TRUE(all_equal(rows, cast(gather(table, Tensor{999, 257}), bfloat16)));
}

TEST_F(MixedPrecision, TokensOfASequentialAreNotRounded) {
  mixed_precision::set_global_policy("mixed_bfloat16");
  const Embedding embedding(1000, 2);
  const Sequential model{embedding, Flatten()};  // its input is made from data
  const Tensor y = model(Tensor{{999, 257}});
  EXPECT_TRUE(all_equal(y, reshape(embedding(Tensor{{999, 257}}), {1, 4})));
}

TEST_F(MixedPrecision, NormalisingLayersSumInFullPrecision) {
  mixed_precision::set_global_policy("mixed_bfloat16");
  // In bfloat16 the variance of these would be 0: their distance is a hundredth of their size.
  const Tensor column = reshape(Tensor{256.0, 258.0, 260.0, 262.0}, {4, 1});
  const BatchNormalization batch;
  const Tensor y = batch(column, {.training = true});
  EXPECT_EQ(y.dtype(), bfloat16);
  EXPECT_TRUE(all_equal(cast(y * 100.0, int32), reshape(Tensor{-134, -44, 44, 134}, {4, 1})));
  for (const Variable& weight : batch.weights()) EXPECT_EQ(weight.dtype(), float32);
  const LayerNormalization layer;
  EXPECT_TRUE(
      all_equal(cast(layer(reshape(column, {1, 4})) * 100.0, int32), Tensor{{-134, -44, 44, 134}}));
  EXPECT_EQ(GroupNormalization({.groups = 1})(reshape(column, {1, 4})).dtype(), bfloat16);
  EXPECT_EQ(RMSNormalization()(reshape(column, {1, 4})).dtype(), bfloat16);
}

TEST_F(MixedPrecision, LossesAndMetricsAreInFullPrecision) {
  const Tensor y_true = ones({3, 1});
  const Tensor y_pred = cast(reshape(Tensor{0.0, 0.0, 17.0}, {3, 1}), bfloat16);
  const Tensor loss = Loss("mse")(y_true, y_pred);
  EXPECT_EQ(loss.dtype(), float32);
  EXPECT_FLOAT_EQ(loss.item<float>(), 86);  // 258 / 3; 258 is no bfloat16
  const Metric metric("mse");
  metric.update_state(y_true, y_pred);
  EXPECT_FLOAT_EQ(metric.result().item<float>(), 86);
}

TEST_F(MixedPrecision, CellsOfAnotherPolicyComputeInTheirs) {
  mixed_precision::set_global_policy("mixed_bfloat16");
  const Tensor x = random::normal({2, 3, 4});
  const LSTM lstm(5, {.return_sequences = true});
  EXPECT_EQ(lstm(x).dtype(), bfloat16);
  EXPECT_EQ(Bidirectional(GRU(3))(x).dtype(), bfloat16);
  const RNN in_full(LSTMCell(5, {.dtype = "float32"}));
  EXPECT_EQ(in_full(x).dtype(), float32);
  for (const Variable& weight : lstm.weights()) EXPECT_EQ(weight.dtype(), float32);
}

TEST_F(MixedPrecision, VariablesCastInScopesAlone) {
  const Variable cast_one(Tensor{1.0}, {.autocast = true});
  const Variable plain(Tensor{1.0});
  const Variable count(Tensor{1}, {.autocast = true});
  const auto dtype_of = [](const Tensor& x) { return x.dtype(); };
  EXPECT_EQ(dtype_of(cast_one), float32);
  const AutocastScope outer(bfloat16);
  EXPECT_EQ(dtype_of(cast_one), bfloat16);
  EXPECT_EQ(cast_one.read_value().dtype(), float32);
  EXPECT_EQ(dtype_of(plain), float32);
  EXPECT_EQ(dtype_of(count), int32);
  {
    const AutocastScope none(DType::kInvalid);
    EXPECT_EQ(dtype_of(cast_one), float32);
  }
  EXPECT_EQ(AutocastScope::current(), bfloat16);
}

Sequential small_model() {
  return Sequential{Input({4}), Dense(8, {.activation = "relu"}), BatchNormalization(),
                    Dense(3, {.activation = "softmax", .dtype = "float32"})};
}

TEST_F(MixedPrecision, ModelsTrain) {
  for (const char* policy : {"mixed_bfloat16", "mixed_float16"}) {
    mixed_precision::set_global_policy(policy);
    random::set_seed(1);
    const Sequential model = small_model();
    model.compile({.optimizer = optimizers::Adam({.learning_rate = 0.02}),
                   .loss = "sparse_categorical_crossentropy",
                   .metrics = {"accuracy"}});
    const Tensor x = random::normal({64, 4});
    const Tensor y = cast(argmax(slice(x, {0, 0}, {64, 3}), 1), int32);
    const History history =
        model.fit(x, y, {.batch_size = 16, .epochs = 30, .verbose = Verbose::kSilent});
    EXPECT_GT(history["accuracy"].back(), 0.9) << policy;
    EXPECT_EQ(model.predict(x).dtype(), float32);
    for (const Variable& weight : model.weights()) EXPECT_EQ(weight.dtype(), float32);
    EXPECT_EQ(LossScaleOptimizer::is(model.optimizer()), std::string(policy) == "mixed_float16");
  }
}

TEST_F(MixedPrecision, LossScalingMayBeLeftOut) {
  mixed_precision::set_global_policy("mixed_float16");
  const Sequential model = small_model();
  model.compile({.loss = "mse", .auto_scale_loss = false});
  EXPECT_FALSE(LossScaleOptimizer::is(model.optimizer()));
  EXPECT_THAT(error_of([&] { LossScaleOptimizer::from(model.optimizer()); }),
              HasSubstr("This optimizer is RMSprop"));
  const LossScaleOptimizer mine("sgd", {.initial_scale = 4});
  model.compile({.optimizer = mine, .loss = "mse"});
  EXPECT_TRUE(LossScaleOptimizer::from(model.optimizer()).inner_optimizer().impl()->class_name() ==
              "SGD");
  EXPECT_THAT(error_of([&] {
                const Optimizer& scaled = mine;
                LossScaleOptimizer twice(scaled);
              }),
              HasSubstr("already"));
}

// One step of a custom loop; the loss is `factor`·Σ w.
template <class Optimizer>
void step(const Optimizer& optimizer, const Variable& w, float factor) {
  GradientTape tape;
  const Tensor loss = reduce_sum(w * factor);
  const std::vector<Variable> weights{w};
  optimizer.apply(tape.gradient(optimizer.scale_loss(loss), weights), weights);
}

TEST_F(MixedPrecision, StepsThatOverflowAreSkippedAndHalveTheScale) {
  const LossScaleOptimizer optimizer(SGD({.learning_rate = 0.5}),
                                     {.initial_scale = 8, .dynamic_growth_steps = 2});
  const Variable w(Tensor{1.0, 2.0});
  EXPECT_THROW(optimizer.dynamic_scale(), FailedPreconditionError);
  EXPECT_FLOAT_EQ(optimizer.scale_loss(Tensor(2.0)).item<float>(), 16);
  step(optimizer, w, 1);
  EXPECT_TRUE(all_equal(w, Tensor{0.5, 1.5}));
  EXPECT_EQ(optimizer.step_counter().read_value().item<std::int64_t>(), 1);
  step(optimizer, w, std::numeric_limits<float>::infinity());
  EXPECT_TRUE(all_equal(w, Tensor{0.5, 1.5}));
  EXPECT_FLOAT_EQ(optimizer.dynamic_scale().read_value().item<float>(), 4);
  EXPECT_EQ(optimizer.step_counter().read_value().item<std::int64_t>(), 0);
  EXPECT_EQ(optimizer.iterations(), 1);
  step(optimizer, w, std::numeric_limits<float>::quiet_NaN());
  EXPECT_FLOAT_EQ(optimizer.dynamic_scale().read_value().item<float>(), 2);
  step(optimizer, w, 1);
  step(optimizer, w, 1);
  EXPECT_TRUE(all_equal(w, Tensor{-0.5, 0.5}));
  EXPECT_FLOAT_EQ(optimizer.dynamic_scale().read_value().item<float>(), 4);
  EXPECT_EQ(optimizer.iterations(), 3);
  EXPECT_DOUBLE_EQ(optimizer.learning_rate(), 0.5);
  optimizer.set_learning_rate(0.25);
  EXPECT_DOUBLE_EQ(optimizer.inner_optimizer().learning_rate(), 0.25);
}

TEST_F(MixedPrecision, AnOverflowInATracedStepLeavesTheWeights) {
  mixed_precision::set_global_policy("mixed_float16");
  const Sequential model = small_model();
  model.compile({.optimizer = "adam", .loss = "mse"});
  const Tensor x = ones({2, 4});
  const Tensor y = zeros({2, 3});
  model.train_on_batch(x, y);
  const auto optimizer = LossScaleOptimizer::from(model.optimizer());
  const auto kernel = model.trainable_weights().front();
  const Tensor before = kernel.read_value();
  EXPECT_FLOAT_EQ(optimizer.dynamic_scale().read_value().item<float>(), 32768);
  model.train_on_batch(x * 1e30, y);  // infinite in float16
  EXPECT_TRUE(all_equal(kernel.read_value(), before));
  EXPECT_FLOAT_EQ(optimizer.dynamic_scale().read_value().item<float>(), 16384);
  EXPECT_EQ(optimizer.iterations(), 1);
}

TEST_F(MixedPrecision, WrongScalesAreRefused) {
  EXPECT_THAT(error_of([] { LossScaleOptimizer("adam", {.initial_scale = 0}); }),
              HasSubstr("initial_scale"));
  EXPECT_THAT(error_of([] { LossScaleOptimizer("adam", {.dynamic_growth_steps = 0}); }),
              HasSubstr("dynamic_growth_steps"));
}

TEST_F(MixedPrecision, WeightsAndScaleAreSaved) {
  mixed_precision::set_global_policy("mixed_float16");
  const Folder folder;
  const std::string path = folder.file("weights");
  const Tensor x = random::normal({8, 4});
  const Tensor y = zeros({8, 3});
  const Sequential model = small_model();
  model.compile({.optimizer = "adam", .loss = "mse"});
  model.train_on_batch(x, y);
  model.train_on_batch(x * 1e30, y);
  model.save_weights(path, {.optimizer = true});
  const Sequential again = small_model();
  again.compile({.optimizer = "adam", .loss = "mse"});
  again.load_weights(path, {.optimizer = true});
  EXPECT_FLOAT_EQ(
      LossScaleOptimizer::from(again.optimizer()).dynamic_scale().read_value().item<float>(),
      16384);
  model.train_on_batch(x, y);
  again.train_on_batch(x, y);
  const std::vector<Variable> ours = model.trainable_weights();
  const std::vector<Variable> theirs = again.trainable_weights();
  for (std::size_t i = 0; i < ours.size(); ++i) EXPECT_TRUE(all_equal(ours[i], theirs[i])) << i;
}

}  // namespace
}  // namespace tandem::keras
