#include <gtest/gtest.h>

#include <tandem/tandem.h>

#include "tests/reference/keras/from_config.h"
#include "tests/reference/keras/records.h"

namespace reference {
namespace {

namespace td = tandem;
using td::Tensor;

void check_loss(const Json& record) {
  const td::keras::Loss loss = make_loss(record.at("loss"), record.at("config"));
  const Tensor y_pred = tensor_of(record.at("y_pred"));
  td::GradientTape tape;
  tape.watch(y_pred);
  const Tensor value =
      loss(tensor_of(record.at("y_true")), y_pred, tensor_of(record.at("sample_weight")));
  expect_equal(value, record.at("value"), "value");
  expect_equal(tape.gradient(value, y_pred), record.at("gradient"), "gradient", 1e-4);
}

TEST(KerasReference, Losses) { for_each_record("losses", "loss", {}, check_loss); }

void check_metric(const Json& record) {
  const td::keras::Metric metric = make_metric(record.at("metric"), record.at("config"));
  EXPECT_EQ(metric.name(), record.at("default_name").get<std::string>());
  for (const Json& update : record.at("updates")) {
    const Tensor weight =
        update.contains("sample_weight") ? tensor_of(update["sample_weight"]) : Tensor();
    if (update.contains("values")) {
      metric.update_state({}, tensor_of(update["values"]), weight);
    } else {
      metric.update_state(tensor_of(update.at("y_true")), tensor_of(update.at("y_pred")), weight);
    }
    expect_equal(metric.result(), update.at("result"), "result", 1e-4);
  }
  metric.reset_state();
  expect_equal(metric.result(), record.at("after_reset"), "after reset");
}

TEST(KerasReference, Metrics) {
  for_each_record("metrics", "metric",
                  {"BinaryIoU", "ConcordanceCorrelation", "F1Score", "FBetaScore", "IoU", "MeanIoU",
                   "OneHotMeanIoU", "PearsonCorrelation", "PrecisionAtRecall", "R2Score",
                   "RecallAtPrecision", "SensitivityAtSpecificity", "SpecificityAtSensitivity"},
                  [](const Json& record) {
                    if (record.at("config").contains("multi_label"))
                      return;  // AUC of each label: not offered
                    check_metric(record);
                  });
}

}  // namespace
}  // namespace reference
