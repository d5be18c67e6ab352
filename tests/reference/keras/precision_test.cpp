#include <cmath>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/reference/keras/from_config.h"
#include "tests/reference/keras/layer_check.h"
#include "tests/reference/keras/records.h"

namespace reference {
namespace {

namespace td = tandem;
using namespace td::keras;
using optimizers::LossScaleOptimizer;
using td::Tensor;

class PolicyScope {
 public:
  explicit PolicyScope(const Json& record) {
    mixed_precision::set_global_policy(record.at("policy").get<std::string>());
  }
  ~PolicyScope() { mixed_precision::set_global_policy("float32"); }
};

// Some roundings: bfloat16 has 8 bits, float16 11.
double tolerance_of(const Json& record) {
  return record.at("policy") == "mixed_bfloat16" ? 0.03 : 0.004;
}

void check_layer_under(const Json& record, bool traced) {
  const PolicyScope policy(record);
  const double tolerance = tolerance_of(record);
  // Gradients are sums of many products that were rounded, in attention several times.
  const double times = record.at("layer") == "MultiHeadAttention" ? 6 : 2.5;
  check_layer(record, traced, {.output = tolerance, .gradient = times * tolerance});
}

TEST(KerasReference, LayersOfMixedPrecisionEagerly) {
  for_each_record("precision", "layer", {}, [](const Json& r) { check_layer_under(r, false); });
}
TEST(KerasReference, LayersOfMixedPrecisionTraced) {
  for_each_record("precision", "layer", {}, [](const Json& r) { check_layer_under(r, true); });
}

void check_step(const Json& record, bool eagerly) {
  const PolicyScope policy(record);
  const double tolerance = tolerance_of(record);
  const Model model = make_model(record.at("model"));
  const Json& compile = record.at("compile");
  const Json& optimizer = compile.at("optimizer");
  std::vector<Metric> metrics;
  for (const Json& metric : compile.at("metrics")) metrics.emplace_back(metric.get<std::string>());
  model.compile(
      {.optimizer = make_optimizer(optimizer.at("class"), optimizer.at("config"), nullptr),
       .loss = compile.at("loss").get<std::string>(),
       .metrics = metrics,
       .run_eagerly = eagerly});
  model.set_weights(values_of(record.at("weights")));
  const Tensor x = tensor_of(record.at("x"));
  const Tensor y = tensor_of(record.at("y"));
  expect_equal(model.predict_on_batch(x), record.at("predictions_before"), "before", tolerance);
  const Logs logs = model.train_on_batch(x, y);
  for (const auto& entry : record.at("train_on_batch").items()) {
    const double want = entry.value().get<double>();
    EXPECT_NEAR(logs.find(entry.key()).value_or(NAN), want, tolerance * (1 + std::abs(want)))
        << entry.key();
  }
  const std::vector<td::Variable> after = model.weights();
  ASSERT_EQ(after.size(), record.at("weights_after").size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    expect_equal(after[i], record["weights_after"][i].at("value"), after[i].name(), tolerance);
  }
  ASSERT_EQ(LossScaleOptimizer::is(model.optimizer()), !record.at("loss_scale").is_null());
  if (const Json& scale = record["loss_scale"]; !scale.is_null()) {
    const auto scaled = LossScaleOptimizer::from(model.optimizer());
    EXPECT_EQ(scaled.dynamic_scale().read_value().item<float>(), scale.get<float>());
  }
  expect_equal(model.predict_on_batch(x), record.at("predictions_after"), "after", tolerance);
}

TEST(KerasReference, StepsOfMixedPrecisionTraced) {
  for_each_record("precision", "model", {}, [](const Json& r) { check_step(r, false); });
}
TEST(KerasReference, StepsOfMixedPrecisionEagerly) {
  for_each_record("precision", "model", {}, [](const Json& r) { check_step(r, true); });
}

void check_loss_scale(const Json& record, bool traced) {
  optimizers::LossScaleOptions options;
  Arguments scaling(record.at("scaling"));
  scaling.take("initial_scale", options.initial_scale);
  scaling.take("dynamic_growth_steps", options.dynamic_growth_steps);
  const LossScaleOptimizer optimizer(
      make_optimizer(record.at("optimizer"), record.at("config"), nullptr), options);
  std::vector<td::Variable> variables;
  for (const Tensor& value : tensors_of(record.at("variables"))) variables.emplace_back(value);
  optimizer.build(variables);
  const auto apply = [&](std::vector<Tensor> gradients) { optimizer.apply(gradients, variables); };
  const auto apply_traced = td::function(apply);
  for (const Json& step : record.at("steps")) {
    EXPECT_EQ(optimizer.scale_loss(Tensor(1.0)).item<float>(), step.at("scale_before"));
    const std::vector<Tensor> gradients = tensors_of(step.at("gradients"));
    if (traced) {
      apply_traced(gradients);
    } else {
      apply(gradients);
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
      expect_equal(variables[i], step.at("variables").at(i), "variable " + std::to_string(i), 1e-5);
    }
    EXPECT_EQ(optimizer.dynamic_scale().read_value().item<float>(), step.at("scale"));
    EXPECT_EQ(optimizer.step_counter().read_value().item<std::int64_t>(), step.at("counter"));
    EXPECT_EQ(optimizer.iterations(), step.at("iterations"));
  }
  const std::vector<td::Variable> state = optimizer.variables();
  ASSERT_EQ(state.size(), record.at("state").size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    expect_equal(state[i], record["state"][i], state[i].name(), 1e-5);
  }
}

TEST(KerasReference, LossScalesEagerly) {
  for_each_record("precision", "optimizer", {}, [](const Json& r) { check_loss_scale(r, false); });
}
TEST(KerasReference, LossScalesTraced) {
  for_each_record("precision", "optimizer", {}, [](const Json& r) { check_loss_scale(r, true); });
}

}  // namespace
}  // namespace reference
