#include "tandem/keras/metrics.h"

#include "tandem/keras/internal/align.h"
#include "tandem/keras/internal/described_metric.h"
#include "tandem/keras/internal/mean_metric.h"
#include "tandem/keras/internal/weighting.h"
#include "tandem/keras/loss_functions.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

// Means and sums; accuracies stand in accuracy_metrics.cpp, counts of outcomes in
// confusion_metrics.cpp.

namespace tandem::keras::metrics {

using internal::MeanMetric;
using internal::name_or;

namespace {

class SumMetric final : public MetricImpl {
 public:
  explicit SumMetric(std::string name)
      : MetricImpl(std::move(name)), total_(add_variable("total", {})) {}
  void update_state(const Tensor&, const Tensor& values, const Tensor& sample_weight) override {
    total_.assign_add(internal::weighted_sum(values, sample_weight).sum);
  }
  Tensor result() const override { return total_.read_value(); }

 private:
  Variable total_;
};

class RootMetric final : public MeanMetric {
 public:
  explicit RootMetric(std::string name)
      : MeanMetric(
            std::move(name),
            [](const Tensor& t, const Tensor& p) {
              const auto pair = internal::align("root_mean_squared_error", t, p);
              return math::squared_difference(pair.x, pair.y);
            },
            Direction::kDown) {}
  Tensor result() const override { return sqrt(MeanMetric::result()); }
};

std::shared_ptr<MetricImpl> smaller_is_better(const MetricOptions& o, const char* name,
                                              Tensor (*function)(const Tensor&, const Tensor&)) {
  return std::make_shared<MeanMetric>(name_or(o.name, name), function, Direction::kDown);
}

}  // namespace

namespace {

constexpr auto kPlain = [](auto& a, auto&) { a.ignore("axis"); };
constexpr auto kEntropy = [](auto& a, auto& o) {
  a("from_logits", o.from_logits);
  a("label_smoothing", o.label_smoothing);
  a.ignore("axis");
};
constexpr auto kSparse = [](auto& a, auto& o) {
  a("from_logits", o.from_logits);
  a.ignore("axis");
};

}  // namespace

Mean::Mean(const MetricOptions& o)
    : Metric(std::make_shared<MeanMetric>(name_or(o.name, "mean"), nullptr)) {
  made_of_ = internal::described_metric(*this, "Mean", kPlain, o);
}
void Mean::update_state(const Tensor& values, const Tensor& sample_weight) const {
  Metric::update_state({}, values, sample_weight);
}
Sum::Sum(const MetricOptions& o) : Metric(std::make_shared<SumMetric>(name_or(o.name, "sum"))) {
  made_of_ = internal::described_metric(*this, "Sum", kPlain, o);
}
void Sum::update_state(const Tensor& values, const Tensor& sample_weight) const {
  Metric::update_state({}, values, sample_weight);
}

MeanSquaredError::MeanSquaredError(const MetricOptions& o)
    : Metric(smaller_is_better(o, "mean_squared_error", losses::mean_squared_error)) {
  made_of_ = internal::described_metric(*this, "MeanSquaredError", kPlain, o);
}
MeanAbsoluteError::MeanAbsoluteError(const MetricOptions& o)
    : Metric(smaller_is_better(o, "mean_absolute_error", losses::mean_absolute_error)) {
  made_of_ = internal::described_metric(*this, "MeanAbsoluteError", kPlain, o);
}
MeanAbsolutePercentageError::MeanAbsolutePercentageError(const MetricOptions& o)
    : Metric(smaller_is_better(o, "mean_absolute_percentage_error",
                               losses::mean_absolute_percentage_error)) {
  made_of_ = internal::described_metric(*this, "MeanAbsolutePercentageError", kPlain, o);
}
MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(const MetricOptions& o)
    : Metric(smaller_is_better(o, "mean_squared_logarithmic_error",
                               losses::mean_squared_logarithmic_error)) {
  made_of_ = internal::described_metric(*this, "MeanSquaredLogarithmicError", kPlain, o);
}
LogCoshError::LogCoshError(const MetricOptions& o)
    : Metric(smaller_is_better(o, "logcosh", losses::log_cosh)) {
  made_of_ = internal::described_metric(*this, "LogCoshError", kPlain, o);
}
Poisson::Poisson(const MetricOptions& o)
    : Metric(smaller_is_better(o, "poisson", losses::poisson)) {
  made_of_ = internal::described_metric(*this, "Poisson", kPlain, o);
}
KLDivergence::KLDivergence(const MetricOptions& o)
    : Metric(smaller_is_better(o, "kl_divergence", losses::kl_divergence)) {
  made_of_ = internal::described_metric(*this, "KLDivergence", kPlain, o);
}
Hinge::Hinge(const MetricOptions& o) : Metric(smaller_is_better(o, "hinge", losses::hinge)) {
  made_of_ = internal::described_metric(*this, "Hinge", kPlain, o);
}
SquaredHinge::SquaredHinge(const MetricOptions& o)
    : Metric(smaller_is_better(o, "squared_hinge", losses::squared_hinge)) {
  made_of_ = internal::described_metric(*this, "SquaredHinge", kPlain, o);
}
CategoricalHinge::CategoricalHinge(const MetricOptions& o)
    : Metric(smaller_is_better(o, "categorical_hinge", losses::categorical_hinge)) {
  made_of_ = internal::described_metric(*this, "CategoricalHinge", kPlain, o);
}

RootMeanSquaredError::RootMeanSquaredError(const MetricOptions& o)
    : Metric(std::make_shared<RootMetric>(name_or(o.name, "root_mean_squared_error"))) {
  made_of_ = internal::described_metric(*this, "RootMeanSquaredError", kPlain, o);
}
CosineSimilarity::CosineSimilarity(const MetricOptions& o)
    : Metric(std::make_shared<MeanMetric>(
          name_or(o.name, "cosine_similarity"),
          [](const Tensor& t, const Tensor& p) { return -losses::cosine_similarity(t, p); },
          Direction::kUp)) {
  made_of_ = internal::described_metric(*this, "CosineSimilarity", kPlain, o);
}

BinaryCrossentropy::BinaryCrossentropy(const CrossentropyMetricOptions& o)
    : Metric(std::make_shared<MeanMetric>(
          name_or(o.name, "binary_crossentropy"),
          [o](const Tensor& t, const Tensor& p) {
            return losses::binary_crossentropy(
                t, p, {.from_logits = o.from_logits, .label_smoothing = o.label_smoothing});
          },
          Direction::kDown)) {
  made_of_ = internal::described_metric(*this, "BinaryCrossentropy", kEntropy, o);
}
CategoricalCrossentropy::CategoricalCrossentropy(const CrossentropyMetricOptions& o)
    : Metric(std::make_shared<MeanMetric>(
          name_or(o.name, "categorical_crossentropy"),
          [o](const Tensor& t, const Tensor& p) {
            return losses::categorical_crossentropy(
                t, p, {.from_logits = o.from_logits, .label_smoothing = o.label_smoothing});
          },
          Direction::kDown)) {
  made_of_ = internal::described_metric(*this, "CategoricalCrossentropy", kEntropy, o);
}
SparseCategoricalCrossentropy::SparseCategoricalCrossentropy(const CrossentropyMetricOptions& o)
    : Metric(std::make_shared<MeanMetric>(
          name_or(o.name, "sparse_categorical_crossentropy"),
          [o](const Tensor& t, const Tensor& p) {
            return losses::sparse_categorical_crossentropy(t, p, o.from_logits);
          },
          Direction::kDown)) {
  made_of_ = internal::described_metric(*this, "SparseCategoricalCrossentropy", kSparse, o);
}

namespace {

const bool kRegistered[] = {
    internal::register_class<Metric, Mean, MetricOptions>("Mean", kPlain),
    internal::register_class<Metric, Sum, MetricOptions>("Sum", kPlain),
    internal::register_class<Metric, MeanSquaredError, MetricOptions>("MeanSquaredError", kPlain),
    internal::register_class<Metric, MeanAbsoluteError, MetricOptions>("MeanAbsoluteError", kPlain),
    internal::register_class<Metric, MeanAbsolutePercentageError, MetricOptions>(
        "MeanAbsolutePercentageError", kPlain),
    internal::register_class<Metric, MeanSquaredLogarithmicError, MetricOptions>(
        "MeanSquaredLogarithmicError", kPlain),
    internal::register_class<Metric, LogCoshError, MetricOptions>("LogCoshError", kPlain),
    internal::register_class<Metric, Poisson, MetricOptions>("Poisson", kPlain),
    internal::register_class<Metric, KLDivergence, MetricOptions>("KLDivergence", kPlain),
    internal::register_class<Metric, Hinge, MetricOptions>("Hinge", kPlain),
    internal::register_class<Metric, SquaredHinge, MetricOptions>("SquaredHinge", kPlain),
    internal::register_class<Metric, CategoricalHinge, MetricOptions>("CategoricalHinge", kPlain),
    internal::register_class<Metric, RootMeanSquaredError, MetricOptions>("RootMeanSquaredError",
                                                                          kPlain),
    internal::register_class<Metric, CosineSimilarity, MetricOptions>("CosineSimilarity", kPlain),
    internal::register_class<Metric, BinaryCrossentropy, CrossentropyMetricOptions>(
        "BinaryCrossentropy", kEntropy),
    internal::register_class<Metric, CategoricalCrossentropy, CrossentropyMetricOptions>(
        "CategoricalCrossentropy", kEntropy),
    internal::register_class<Metric, SparseCategoricalCrossentropy, CrossentropyMetricOptions>(
        "SparseCategoricalCrossentropy", kSparse)};

}  // namespace

}  // namespace tandem::keras::metrics
