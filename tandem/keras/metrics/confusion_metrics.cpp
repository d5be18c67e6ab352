#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tandem/core/error.h"
#include "tandem/keras/internal/align.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/described_metric.h"
#include "tandem/keras/internal/mean_metric.h"
#include "tandem/keras/metrics.h"
#include "tandem/keras/more_metrics.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::metrics {

using internal::name_or;

namespace {

// For each threshold the weighted number of examples of each outcome.
struct Outcomes {
  Tensor true_positives;
  Tensor false_positives;
  Tensor true_negatives;
  Tensor false_negatives;
};

struct Selection {
  std::vector<double> thresholds;
  std::optional<std::int64_t> top_k;
  std::optional<std::int64_t> class_id;
};

Tensor keep_top_k(const Tensor& y_pred, std::int64_t k) {
  const std::int64_t classes = y_pred.dim(-1);
  const Tensor mask =
      reduce_sum(one_hot(top_k(y_pred, k, false).indices, classes, {.dtype = y_pred.dtype()}), -2);
  return y_pred * mask + (1 - mask) * -1e10;
}

Outcomes count_outcomes(const char* who, const Tensor& y_true, const Tensor& y_pred,
                        const Tensor& sample_weight, const Selection& selection) {
  auto [t, p] = internal::align(who, cast(y_true, float32), cast(y_pred, float32));
  Tensor weight = sample_weight.defined() ? cast(sample_weight, float32) : Tensor();
  if (selection.top_k) p = keep_top_k(p, *selection.top_k);
  if (selection.class_id) {
    const std::int64_t column = *selection.class_id;
    t = index(t, {ellipsis, Slice(column, column + 1)});
    p = index(p, {ellipsis, Slice(column, column + 1)});
  }
  if (weight.defined()) {
    while (weight.rank() >= 0 && weight.rank() < p.rank()) weight = expand_dims(weight, -1);
    weight = reshape(broadcast_to(weight, shape(p)), {1, -1});
  }
  const std::vector<float> levels(selection.thresholds.begin(), selection.thresholds.end());
  const Tensor above = reshape(p, {1, -1}) >
                       Tensor::from(levels, Shape{static_cast<std::int64_t>(levels.size()), 1});
  const Tensor positive = broadcast_to(cast(reshape(t, {1, -1}), DType::kBool), shape(above));
  const auto count = [&](const Tensor& which) {
    const Tensor ones = cast(which, float32);
    return reduce_sum(weight.defined() ? ones * weight : ones, 1);
  };
  return {count(logical_and(positive, above)), count(logical_and(logical_not(positive), above)),
          count(logical_and(logical_not(positive), logical_not(above))),
          count(logical_and(positive, logical_not(above)))};
}

std::vector<double> thresholds_or(const std::vector<double>& given, double standard) {
  for (const double threshold : given)
    internal::require_range("thresholds", "each", threshold, 0, 1);
  return given.empty() ? std::vector<double>{standard} : given;
}

Tensor scalar_if_single(const Tensor& values) {
  return values.dim(0) == 1 ? reshape(values, {}) : values;
}

class CountMetric final : public MetricImpl {
 public:
  CountMetric(std::string name, const CountOptions& o, Tensor Outcomes::*which)
      : MetricImpl(std::move(name)),
        selection_{thresholds_or(o.thresholds, 0.5), {}, {}},
        which_(which),
        count_(add_variable("accumulator",
                            {static_cast<std::int64_t>(selection_.thresholds.size())})) {}

  void update_state(const Tensor& t, const Tensor& p, const Tensor& w) override {
    count_.assign_add(count_outcomes(name().c_str(), t, p, w, selection_).*which_);
  }
  Tensor result() const override { return scalar_if_single(count_); }

 private:
  Selection selection_;
  Tensor Outcomes::*which_;
  Variable count_;
};

// The share of true positives among themselves and another outcome.
class ShareMetric final : public MetricImpl {
 public:
  ShareMetric(std::string name, const PrecisionOptions& o, Tensor Outcomes::*other)
      : MetricImpl(std::move(name), Direction::kUp),
        selection_{thresholds_or(o.thresholds, o.top_k ? -1e10 : 0.5), o.top_k, o.class_id},
        other_(other),
        true_positives_(add_variable("true_positives", size())),
        others_(add_variable("others", size())) {
    if (o.top_k) internal::require_positive(MetricImpl::name(), "top_k", *o.top_k);
  }

  void update_state(const Tensor& t, const Tensor& p, const Tensor& w) override {
    const Outcomes outcomes = count_outcomes(name().c_str(), t, p, w, selection_);
    true_positives_.assign_add(outcomes.true_positives);
    others_.assign_add(outcomes.*other_);
  }
  Tensor result() const override {
    const Tensor hits = true_positives_;
    return scalar_if_single(math::divide_no_nan(hits, hits + others_));
  }

 private:
  Shape size() const { return {static_cast<std::int64_t>(selection_.thresholds.size())}; }
  Selection selection_;
  Tensor Outcomes::*other_;
  Variable true_positives_;
  Variable others_;
};

using Values = std::vector<float>;

float ratio(float a, float b) { return b == 0 ? 0 : a / b; }

// Davis and Goadrich: between two points, precision follows from true positives that grow linearly.
float interpolated_pr(const Values& tp, const Values& fp, const Values& fn) {
  float area = 0;
  for (std::size_t i = 0; i + 1 < tp.size(); ++i) {
    const float p = tp[i] + fp[i];
    const float next_p = tp[i + 1] + fp[i + 1];
    const float gained = tp[i] - tp[i + 1];
    const float slope = ratio(gained, std::max(p - next_p, 0.0f));
    const float intercept = tp[i + 1] - slope * next_p;
    const float growth = p > 0 && next_p > 0 ? p / next_p : 1;
    area += ratio(slope * (gained + intercept * std::log(growth)), tp[i + 1] + fn[i + 1]);
  }
  return area;
}

class AreaMetric final : public MetricImpl {
 public:
  explicit AreaMetric(const AUCOptions& o)
      : MetricImpl(name_or(o.name, "auc"), Direction::kUp),
        options_(o),
        selection_{levels(o), {}, {}},
        true_positives_(add_variable("true_positives", {o.num_thresholds})),
        false_positives_(add_variable("false_positives", {o.num_thresholds})),
        true_negatives_(add_variable("true_negatives", {o.num_thresholds})),
        false_negatives_(add_variable("false_negatives", {o.num_thresholds})) {}

  void update_state(const Tensor& t, const Tensor& p, const Tensor& w) override {
    const Outcomes o =
        count_outcomes("auc", t, options_.from_logits ? sigmoid(p) : p, w, selection_);
    true_positives_.assign_add(o.true_positives);
    false_positives_.assign_add(o.false_positives);
    true_negatives_.assign_add(o.true_negatives);
    false_negatives_.assign_add(o.false_negatives);
  }

  Tensor result() const override {
    const Values tp = true_positives_.read_value().to_vector<float>();
    const Values fp = false_positives_.read_value().to_vector<float>();
    const Values tn = true_negatives_.read_value().to_vector<float>();
    const Values fn = false_negatives_.read_value().to_vector<float>();
    const bool pr = options_.curve == "PR";
    if (pr && options_.summation_method == "interpolation")
      return Tensor(interpolated_pr(tp, fp, fn));
    Values x, y;
    for (std::size_t i = 0; i < tp.size(); ++i) {
      const float recall = ratio(tp[i], tp[i] + fn[i]);
      x.push_back(pr ? recall : ratio(fp[i], fp[i] + tn[i]));
      y.push_back(pr ? ratio(tp[i], tp[i] + fp[i]) : recall);
    }
    float area = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i)
      area += (x[i] - x[i + 1]) * height(y[i], y[i + 1]);
    return Tensor(area);
  }

 private:
  static std::vector<double> levels(const AUCOptions& o) {
    if (o.num_thresholds < 2 || o.num_thresholds > 1'000'000) {
      throw InvalidArgumentError(
          cat("AUC: num_thresholds must be from 2 to 1000000, got ", o.num_thresholds, "."));
    }
    if (o.curve != "ROC" && o.curve != "PR") {
      throw InvalidArgumentError(cat("AUC: curve must be 'ROC' or 'PR', got '", o.curve, "'."));
    }
    const std::string& method = o.summation_method;
    if (method != "interpolation" && method != "minoring" && method != "majoring") {
      throw InvalidArgumentError(
          cat("AUC: summation_method must be 'interpolation', 'minoring' or 'majoring', got '",
              method, "'."));
    }
    std::vector<double> levels{-internal::kEpsilon};
    for (std::int64_t i = 1; i + 1 < o.num_thresholds; ++i) {
      levels.push_back(static_cast<double>(i) / static_cast<double>(o.num_thresholds - 1));
    }
    levels.push_back(1 + internal::kEpsilon);
    return levels;
  }

  float height(float a, float b) const {
    if (options_.summation_method == "minoring") return std::min(a, b);
    if (options_.summation_method == "majoring") return std::max(a, b);
    return (a + b) / 2;
  }

  AUCOptions options_;
  Selection selection_;
  Variable true_positives_;
  Variable false_positives_;
  Variable true_negatives_;
  Variable false_negatives_;
};

Tensor sensitivity(const Outcomes& o) {
  return math::divide_no_nan(o.true_positives, o.true_positives + o.false_negatives);
}
Tensor specificity(const Outcomes& o) {
  return math::divide_no_nan(o.true_negatives, o.true_negatives + o.false_positives);
}
Tensor precision(const Outcomes& o) {
  return math::divide_no_nan(o.true_positives, o.true_positives + o.false_positives);
}

// The largest of one measure where another is at least a value.
class OperatingPoint final : public MetricImpl {
 public:
  using Measure = Tensor (*)(const Outcomes&);
  OperatingPoint(const char* who, const char* standard_name, double least, Measure constrained,
                 Measure best, const OperatingPointOptions& o)
      : MetricImpl(name_or(o.name, standard_name), Direction::kUp),
        least_(least),
        constrained_(constrained),
        best_(best),
        selection_{levels(who, least, o), {}, o.class_id},
        true_positives_(add_variable("true_positives", size())),
        false_positives_(add_variable("false_positives", size())),
        true_negatives_(add_variable("true_negatives", size())),
        false_negatives_(add_variable("false_negatives", size())) {}

  void update_state(const Tensor& t, const Tensor& p, const Tensor& w) override {
    const Outcomes o = count_outcomes(name().c_str(), t, p, w, selection_);
    true_positives_.assign_add(o.true_positives);
    false_positives_.assign_add(o.false_positives);
    true_negatives_.assign_add(o.true_negatives);
    false_negatives_.assign_add(o.false_negatives);
  }
  Tensor result() const override {
    const Outcomes o{true_positives_, false_positives_, true_negatives_, false_negatives_};
    const Tensor best = best_(o);
    const Tensor allowed = constrained_(o) >= least_;
    return maximum(reduce_max(where(allowed, best, zeros_like(best))), 0.0);
  }

 private:
  static std::vector<double> levels(const char* who, double least, const OperatingPointOptions& o) {
    internal::require_range(who, "the value", least, 0, 1);
    internal::require_positive(who, "num_thresholds", o.num_thresholds);
    if (o.num_thresholds == 1) return {0.5};
    std::vector<double> levels;
    for (std::int64_t i = 0; i < o.num_thresholds; ++i)
      levels.push_back(static_cast<double>(i) / static_cast<double>(o.num_thresholds - 1));
    return levels;
  }
  Shape size() const { return {static_cast<std::int64_t>(selection_.thresholds.size())}; }

  double least_;
  Measure constrained_, best_;
  Selection selection_;
  Variable true_positives_, false_positives_, true_negatives_, false_negatives_;
};

}  // namespace

namespace {

constexpr auto kCount = [](auto& a, auto& o) { a("thresholds", o.thresholds); };
constexpr auto kShare = [](auto& a, auto& o) {
  a("thresholds", o.thresholds);
  a("top_k", o.top_k);
  a("class_id", o.class_id);
};
constexpr auto kArea = [](auto& a, auto& o) {
  a("num_thresholds", o.num_thresholds);
  a("curve", o.curve);
  a("summation_method", o.summation_method);
  a("from_logits", o.from_logits);
  a.ignore("multi_label");
};

}  // namespace

TruePositives::TruePositives(const CountOptions& o)
    : Metric(std::make_shared<CountMetric>(name_or(o.name, "true_positives"), o,
                                           &Outcomes::true_positives)) {
  made_of_ = internal::described_metric(*this, "TruePositives", kCount, o);
}
TrueNegatives::TrueNegatives(const CountOptions& o)
    : Metric(std::make_shared<CountMetric>(name_or(o.name, "true_negatives"), o,
                                           &Outcomes::true_negatives)) {
  made_of_ = internal::described_metric(*this, "TrueNegatives", kCount, o);
}
FalsePositives::FalsePositives(const CountOptions& o)
    : Metric(std::make_shared<CountMetric>(name_or(o.name, "false_positives"), o,
                                           &Outcomes::false_positives)) {
  made_of_ = internal::described_metric(*this, "FalsePositives", kCount, o);
}
FalseNegatives::FalseNegatives(const CountOptions& o)
    : Metric(std::make_shared<CountMetric>(name_or(o.name, "false_negatives"), o,
                                           &Outcomes::false_negatives)) {
  made_of_ = internal::described_metric(*this, "FalseNegatives", kCount, o);
}
Precision::Precision(const PrecisionOptions& o)
    : Metric(std::make_shared<ShareMetric>(name_or(o.name, "precision"), o,
                                           &Outcomes::false_positives)) {
  made_of_ = internal::described_metric(*this, "Precision", kShare, o);
}
Recall::Recall(const PrecisionOptions& o)
    : Metric(
          std::make_shared<ShareMetric>(name_or(o.name, "recall"), o, &Outcomes::false_negatives)) {
  made_of_ = internal::described_metric(*this, "Recall", kShare, o);
}
AUC::AUC(const AUCOptions& o) : Metric(std::make_shared<AreaMetric>(o)) {
  made_of_ = internal::described_metric(*this, "AUC", kArea, o);
}

namespace {

// A metric of one number and options; files keep the number under its name.
template <class Class>
struct PointArguments {
  const char* value_name;
  template <class A, class O, class V>
  void operator()(A& a, O& o, V& value) const {
    a(value_name, value);
    a("num_thresholds", o.num_thresholds);
    a("class_id", o.class_id);
  }
};
ConfigObject described_point(const Metric& metric, const char* class_name, const char* value_name,
                             double value, const OperatingPointOptions& o) {
  ConfigObject object{.class_name = class_name, .module = "keras.metrics"};
  object.config.set("name", metric.name());
  internal::ArgumentWriter writer(object.config);
  PointArguments<void>{value_name}(writer, o, value);
  return object;
}
template <class Class>
bool register_point(const char* class_name, const char* value_name) {
  internal::ClassRegistry<Metric>::instance().add(
      class_name, [value_name](internal::ArgumentReader& arguments) -> Metric {
        OperatingPointOptions o;
        double value = 0;
        arguments.settings(o);
        PointArguments<Class>{value_name}(arguments, o, value);
        return Class(value, o);
      });
  return true;
}

}  // namespace

SensitivityAtSpecificity::SensitivityAtSpecificity(double value, const OperatingPointOptions& o)
    : Metric(std::make_shared<OperatingPoint>("SensitivityAtSpecificity",
                                              "sensitivity_at_specificity", value,
                                              metrics::specificity, metrics::sensitivity, o)) {
  made_of_ = described_point(*this, "SensitivityAtSpecificity", "specificity", value, o);
}
SpecificityAtSensitivity::SpecificityAtSensitivity(double value, const OperatingPointOptions& o)
    : Metric(std::make_shared<OperatingPoint>("SpecificityAtSensitivity",
                                              "specificity_at_sensitivity", value,
                                              metrics::sensitivity, metrics::specificity, o)) {
  made_of_ = described_point(*this, "SpecificityAtSensitivity", "sensitivity", value, o);
}
PrecisionAtRecall::PrecisionAtRecall(double value, const OperatingPointOptions& o)
    : Metric(std::make_shared<OperatingPoint>("PrecisionAtRecall", "precision_at_recall", value,
                                              metrics::sensitivity, metrics::precision, o)) {
  made_of_ = described_point(*this, "PrecisionAtRecall", "recall", value, o);
}
RecallAtPrecision::RecallAtPrecision(double value, const OperatingPointOptions& o)
    : Metric(std::make_shared<OperatingPoint>("RecallAtPrecision", "recall_at_precision", value,
                                              metrics::precision, metrics::sensitivity, o)) {
  made_of_ = described_point(*this, "RecallAtPrecision", "precision", value, o);
}

namespace {

const bool kRegistered[] = {
    register_point<SensitivityAtSpecificity>("SensitivityAtSpecificity", "specificity"),
    register_point<SpecificityAtSensitivity>("SpecificityAtSensitivity", "sensitivity"),
    register_point<PrecisionAtRecall>("PrecisionAtRecall", "recall"),
    register_point<RecallAtPrecision>("RecallAtPrecision", "precision"),
    internal::register_class<Metric, TruePositives, CountOptions>("TruePositives", kCount),
    internal::register_class<Metric, TrueNegatives, CountOptions>("TrueNegatives", kCount),
    internal::register_class<Metric, FalsePositives, CountOptions>("FalsePositives", kCount),
    internal::register_class<Metric, FalseNegatives, CountOptions>("FalseNegatives", kCount),
    internal::register_class<Metric, Precision, PrecisionOptions>("Precision", kShare),
    internal::register_class<Metric, Recall, PrecisionOptions>("Recall", kShare),
    internal::register_class<Metric, AUC, AUCOptions>("AUC", kArea)};

}  // namespace

}  // namespace tandem::keras::metrics
