#include <cmath>

#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/reference/keras/from_config.h"
#include "tests/reference/keras/records.h"

namespace reference {
namespace {

namespace td = tandem;
using td::Tensor;

bool is_offered(const Json& config) {
  return !config.contains("use_ema") && !config.contains("gradient_accumulation_steps");
}

void check_optimizer(const Json& record, bool traced) {
  if (!is_offered(record.at("config"))) return;
  const td::keras::Optimizer optimizer =
      make_optimizer(record.at("optimizer"), record.at("config"), record.at("schedule"));
  std::vector<td::Variable> variables;
  for (const Tensor& value : tensors_of(record.at("variables"))) variables.emplace_back(value);
  optimizer.build(variables);
  const auto apply = [&](std::vector<Tensor> gradients) { optimizer.apply(gradients, variables); };
  const auto apply_traced = td::function(apply);
  for (const Json& step : record.at("steps")) {
    const std::vector<Tensor> gradients = tensors_of(step.at("gradients"));
    if (traced) {
      apply_traced(gradients);
    } else {
      apply(gradients);
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
      expect_equal(variables[i], step.at("variables").at(i), "variable " + std::to_string(i), 1e-5);
    }
  }
  EXPECT_EQ(optimizer.iterations(), static_cast<std::int64_t>(record.at("steps").size()));
  EXPECT_EQ(optimizer.variables().size(), record.at("state").size());
}

TEST(KerasReference, OptimizersEagerly) {
  for_each_record("optimizers", "optimizer", {}, [](const Json& r) { check_optimizer(r, false); });
}
TEST(KerasReference, OptimizersTraced) {
  for_each_record("optimizers", "optimizer", {}, [](const Json& r) { check_optimizer(r, true); });
}

TEST(KerasReference, Schedules) {
  for_each_record("schedules", "schedule", {}, [](const Json& record) {
    const auto schedule = make_schedule(record.at("schedule"), record.at("config"));
    std::vector<float> values;
    for (const Json& step : record.at("steps"))
      values.push_back(schedule(Tensor(step.get<float>())).item<float>());
    expect_equal(Tensor::from(values), record.at("values"), "values", 1e-5);
  });
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double lowest = 1e300;
  double highest = -1e300;
};
Moments moments_of(const std::vector<float>& values) {
  Moments m;
  const double n = static_cast<double>(values.size());
  for (const float v : values) {
    m.mean += v / n;
    m.lowest = std::min<double>(m.lowest, v);
    m.highest = std::max<double>(m.highest, v);
  }
  for (const float v : values) m.deviation += (v - m.mean) * (v - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

void check_distribution(const Json& want, const std::vector<float>& values) {
  const Moments got = moments_of(values);
  const double n = static_cast<double>(values.size());
  const std::string kind = want.at("kind");
  if (kind == "uniform") {
    const double low = want.at("low"), high = want.at("high");
    EXPECT_GE(got.lowest, low - 1e-6 * std::abs(low));
    EXPECT_LE(got.highest, high + 1e-6 * std::abs(high));
    EXPECT_NEAR(got.deviation, (high - low) / std::sqrt(12.0), 0.6 * (high - low) / std::sqrt(n));
    EXPECT_NEAR(got.mean, (low + high) / 2, 1.5 * (high - low) / std::sqrt(n));
    return;
  }
  const double mean = want.at("mean"), stddev = want.at("stddev");
  const bool cut = kind == "truncated_normal";
  const double expected = cut ? stddev * 0.87962566103423978 : stddev;
  EXPECT_NEAR(got.mean, mean, 5 * expected / std::sqrt(n));
  EXPECT_NEAR(got.deviation, expected, 5 * expected / std::sqrt(2 * n));
  if (cut) {
    EXPECT_LE(got.highest, mean + 2.000001 * stddev);
    EXPECT_GE(got.lowest, mean - 2.000001 * stddev);
  } else {
    EXPECT_GT(std::max(got.highest - mean, mean - got.lowest), 2 * stddev);
  }
}

TEST(KerasReference, Initializers) {
  td::random::set_seed(1);
  for_each_record("initializers", "initializer", {}, [](const Json& record) {
    const auto initializer = make_initializer(record.at("initializer"), record.at("config"));
    const auto sizes = record.at("shape").get<std::vector<std::int64_t>>();
    const Tensor value = initializer(td::Shape(std::span<const std::int64_t>(sizes)));
    if (record.contains("value")) {
      expect_equal(value, record["value"], "value", 0);
    } else {
      check_distribution(record.at("distribution"), value.to_vector<float>());
    }
  });
}

TEST(KerasReference, Regularizers) {
  for_each_record("regularizers", "regularizer", {}, [](const Json& record) {
    using namespace td::keras;
    const Json& config = record.at("config");
    const std::string name = record.at("regularizer");
    Regularizer regularizer(name);
    if (config.is_object() && !config.empty()) {
      const double l1 = config.value("l1", 0.0), l2 = config.value("l2", 0.0);
      if (name == "L1") regularizer = regularizers::L1(l1);
      if (name == "L2") regularizer = regularizers::L2(l2);
      if (name == "L1L2") regularizer = regularizers::L1L2(l1, l2);
    }
    expect_equal(regularizer(tensor_of(record.at("weights"))), record.at("value"), "value");
  });
}

}  // namespace
}  // namespace reference
