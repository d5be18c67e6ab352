// Labels and predictions that do not fit each other: errors name the metric, what it was given, and
// what to change.

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/keras/keras.h"
#include "tandem/ops/creation_ops.h"

namespace tandem::keras {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "no InvalidArgumentError";
}

TEST(MetricError, NamesMetricShapesAndRemedy) {
  const std::string text = error_of([] {
    metrics::Precision({.name = "share"}).update_state(Tensor{1, 2, 0}, zeros({3, 4}));
  });
  EXPECT_THAT(text, HasSubstr("in metric 'share' of y_true int32[3], y_pred float[3,4]"));
  EXPECT_THAT(text, HasSubstr("td::one_hot(labels, 4)"));
  EXPECT_THAT(error_of([] {
                metrics::SparseCategoricalAccuracy().update_state(zeros({3, 4}), zeros({3, 4}));
              }),
              HasSubstr("td::argmax(labels, -1)"));
  EXPECT_THAT(error_of([] { metrics::MeanAbsoluteError().update_state(zeros({4}), zeros({3})); }),
              HasSubstr("give as many labels as predictions"));
  EXPECT_THAT(error_of([] {
                metrics::MeanSquaredError().update_state(zeros({3, 1}), zeros({3, 1}), ones({2}));
              }),
              HasSubstr("sample_weight float[2]: give one weight for each example"));
}

TEST(MetricError, OfAFunctionOfOnesOwnNamesItToo) {
  const Metric difference =
      Metric::from_function("difference", [](const Tensor& t, const Tensor& p) { return t - p; });
  EXPECT_THAT(error_of([&] {
                difference.update_state(zeros({3, 2}), zeros({3, 5}));
              }),
              HasSubstr("in metric 'difference' of y_true float[3,2], y_pred float[3,5]"));
}

TEST(MetricError, OfAnotherKindHasNoAdviceOnLabels) {
  const Metric failing = Metric::from_function(
      "failing", [](const Tensor&, const Tensor&) -> Tensor { throw NotFoundError("no table"); });
  try {
    failing.update_state(zeros({3, 2}), zeros({3, 2}));
    ADD_FAILURE();
  } catch (const NotFoundError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no table"));
    EXPECT_THAT(error.what(), HasSubstr("in metric 'failing'"));
    EXPECT_THAT(error.what(), Not(HasSubstr("argmax")));
  }
}

TEST(MetricError, InFitNamesItAsTheLogsDo) {
  const Sequential model{Input({2}), Dense(3, {.activation = "softmax"})};
  model.compile({.optimizer = "sgd",
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy", metrics::Recall()}});
  const std::string text = error_of([&] {
    model.fit(ones({4, 2}), Tensor{0, 1, 2, 0}, {.verbose = 0});
  });
  EXPECT_THAT(text, HasSubstr("in metric 'recall' of y_true int32[4], y_pred float[4,3]"));
  EXPECT_THAT(text, HasSubstr("td::one_hot(labels, 3)"));
  EXPECT_THAT(text, HasSubstr("in fit of model"));
}

}  // namespace
}  // namespace tandem::keras
