#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/align.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/described_metric.h"
#include "tandem/keras/internal/mean_metric.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/metrics.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::keras::metrics {

using internal::MeanMetric;
using internal::name_or;

namespace {

Tensor equal_values(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = internal::align("accuracy", y_true, y_pred);
  return cast(equal(t, p), float32);
}

Tensor binary_matches(const Tensor& y_true, const Tensor& y_pred, double threshold) {
  const auto [t, p] = internal::align("binary_accuracy", y_true, y_pred);
  return cast(equal(t, cast(p > threshold, t.dtype())), float32);
}

Tensor categorical_matches(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = internal::align("categorical_accuracy", y_true, y_pred);
  return cast(equal(argmax(t, -1), argmax(p, -1)), float32);
}

// Class numbers without an axis of size 1 at the end, one for each row of predictions.
Tensor class_numbers(const char* who, const Tensor& y_true, const Tensor& y_pred, DType dtype) {
  Tensor labels = y_true;
  if (labels.rank() == y_pred.rank() && labels.rank() > 0 && labels.dim(-1) == 1)
    labels = squeeze(labels, {-1});
  if (labels.rank() >= 0 && y_pred.rank() >= 0 && labels.rank() + 1 != y_pred.rank()) {
    throw InvalidArgumentError(
        cat(who, ": labels are class numbers, one for each row of probabilities, but ",
            "y_true.shape=", internal::shape_text(y_true.partial_shape()),
            " and y_pred.shape=", internal::shape_text(y_pred.partial_shape()), "."));
  }
  return cast(labels, dtype);
}

Tensor sparse_matches(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor labels = class_numbers("sparse_categorical_accuracy", y_true, y_pred, int64);
  Tensor matches = cast(equal(labels, argmax(y_pred, -1)), float32);
  return matches.rank() > 1 && matches.dim(-1) == 1 ? squeeze(matches, {-1}) : matches;
}

Tensor top_matches(Tensor labels, const Tensor& y_pred, std::int64_t k) {
  if (y_pred.rank() == 2) return cast(nn::in_top_k(std::move(labels), y_pred, k), float32);
  const Tensor sizes = shape(labels);
  const Tensor flat = nn::in_top_k(reshape(labels, {-1}), reshape(y_pred, {-1, y_pred.dim(-1)}), k);
  return reshape(cast(flat, float32), IntList(sizes));
}

}  // namespace

namespace {

constexpr auto kPlain = [](auto& a, auto&) { a.ignore("axis"); };
constexpr auto kThreshold = [](auto& a, auto& o) { a("threshold", o.threshold); };
constexpr auto kTopK = [](auto& a, auto& o) { a("k", o.k); };

}  // namespace

Accuracy::Accuracy(const MetricOptions& o)
    : Metric(
          std::make_shared<MeanMetric>(name_or(o.name, "accuracy"), equal_values, Direction::kUp)) {
  made_of_ = internal::described_metric(*this, "Accuracy", kPlain, o);
}
BinaryAccuracy::BinaryAccuracy(const BinaryAccuracyOptions& o)
    : Metric(std::make_shared<MeanMetric>(
          name_or(o.name, "binary_accuracy"),
          [threshold = o.threshold](const Tensor& t, const Tensor& p) {
            return binary_matches(t, p, threshold);
          },
          Direction::kUp)) {
  made_of_ = internal::described_metric(*this, "BinaryAccuracy", kThreshold, o);
  internal::require_range("BinaryAccuracy", "threshold", o.threshold, 0, 1);
}
CategoricalAccuracy::CategoricalAccuracy(const MetricOptions& o)
    : Metric(std::make_shared<MeanMetric>(name_or(o.name, "categorical_accuracy"),
                                          categorical_matches, Direction::kUp)) {
  made_of_ = internal::described_metric(*this, "CategoricalAccuracy", kPlain, o);
}
SparseCategoricalAccuracy::SparseCategoricalAccuracy(const MetricOptions& o)
    : Metric(std::make_shared<MeanMetric>(name_or(o.name, "sparse_categorical_accuracy"),
                                          sparse_matches, Direction::kUp)) {
  made_of_ = internal::described_metric(*this, "SparseCategoricalAccuracy", kPlain, o);
}

TopKCategoricalAccuracy::TopKCategoricalAccuracy(const TopKOptions& o)
    : Metric(std::make_shared<MeanMetric>(
          name_or(o.name, "top_k_categorical_accuracy"),
          [k = o.k](const Tensor& y_true, const Tensor& y_pred) {
            const auto [t, p] = internal::align("top_k_categorical_accuracy", y_true, y_pred);
            return top_matches(argmax(t, -1, int32), p, k);
          },
          Direction::kUp)) {
  made_of_ = internal::described_metric(*this, "TopKCategoricalAccuracy", kTopK, o);
  internal::require_positive("TopKCategoricalAccuracy", "k", o.k);
}
SparseTopKCategoricalAccuracy::SparseTopKCategoricalAccuracy(const TopKOptions& o)
    : Metric(std::make_shared<MeanMetric>(
          name_or(o.name, "sparse_top_k_categorical_accuracy"),
          [k = o.k](const Tensor& t, const Tensor& p) {
            return top_matches(class_numbers("sparse_top_k_categorical_accuracy", t, p, int32), p,
                               k);
          },
          Direction::kUp)) {
  made_of_ = internal::described_metric(*this, "SparseTopKCategoricalAccuracy", kTopK, o);
  internal::require_positive("SparseTopKCategoricalAccuracy", "k", o.k);
}

namespace {

const bool kRegistered[] = {
    internal::register_class<Metric, Accuracy, MetricOptions>("Accuracy", kPlain),
    internal::register_class<Metric, BinaryAccuracy, BinaryAccuracyOptions>("BinaryAccuracy",
                                                                            kThreshold),
    internal::register_class<Metric, CategoricalAccuracy, MetricOptions>("CategoricalAccuracy",
                                                                         kPlain),
    internal::register_class<Metric, SparseCategoricalAccuracy, MetricOptions>(
        "SparseCategoricalAccuracy", kPlain),
    internal::register_class<Metric, TopKCategoricalAccuracy, TopKOptions>(
        "TopKCategoricalAccuracy", kTopK),
    internal::register_class<Metric, SparseTopKCategoricalAccuracy, TopKOptions>(
        "SparseTopKCategoricalAccuracy", kTopK)};

}  // namespace

}  // namespace tandem::keras::metrics
