#include "tandem/keras/more_metrics.h"

#include <numeric>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/mean_metric.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/loss_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::metrics {
namespace {

using internal::name_or;
constexpr double kEpsilon = 1e-7;

// How class numbers are made of labels and predictions.
enum class Classes { kNumbers, kBinary, kOneHot };

Shape square_of_classes(const char* name, const IoUOptions& o) {
  keras::internal::require_positive(name, "num_classes", o.num_classes);
  return {o.num_classes, o.num_classes};
}

class IoUImpl final : public MetricImpl {
 public:
  IoUImpl(const char* name, IoUOptions o, Classes classes)
      : MetricImpl(name_or(o.name, name), Direction::kUp),
        options_(std::move(o)),
        classes_(classes),
        matrix_(add_variable("total_confusion_matrix", square_of_classes(name, options_))) {
    if (options_.target_class_ids.empty()) {
      options_.target_class_ids.resize(static_cast<std::size_t>(options_.num_classes));
      std::iota(options_.target_class_ids.begin(), options_.target_class_ids.end(), 0);
    }
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight) override {
    Tensor truth = y_true, guess = y_pred;
    if (classes_ == Classes::kBinary) guess = cast(guess >= options_.threshold, int64);
    if (classes_ == Classes::kOneHot) {
      truth = argmax(truth, -1);
      guess = argmax(guess, -1);
    }
    truth = cast(reshape(truth, {-1}), int64);
    guess = cast(reshape(guess, {-1}), int64);
    Tensor weights = ones_like(truth, float32);
    if (sample_weight.defined()) weights = reshape(cast(sample_weight, float32), {-1}) * weights;
    if (options_.ignore_class) {
      const Tensor counts = truth != *options_.ignore_class;
      weights = weights * cast(counts, float32);
      truth = where(counts, truth, zeros_like(truth));
      guess = where(counts, guess, zeros_like(guess));
    }
    matrix_.assign_add(scatter_nd(stack({truth, guess}, 1), weights,
                                  {options_.num_classes, options_.num_classes}));
  }
  Tensor result() const override {
    const Tensor m = matrix_.read_value();
    const Tensor ids(options_.target_class_ids);
    const Tensor all = reduce_sum(m, 0) + reduce_sum(m, 1);
    const Tensor hits = reduce_sum(m * eye(options_.num_classes), 0);
    const Tensor union_of = gather(all - hits, ids), both = gather(hits, ids);
    const Tensor seen = cast(union_of > 0.0, float32);
    return math::divide_no_nan(reduce_sum(math::divide_no_nan(both, union_of)), reduce_sum(seen));
  }

 private:
  IoUOptions options_;
  Classes classes_;
  Variable matrix_;
};

// Variables whose size the first batch says; made outside of traces, at `resolve` or the first
// update.
class FBetaImpl final : public MetricImpl {
 public:
  FBetaImpl(const char* name, const FBetaOptions& o)
      : MetricImpl(name_or(o.name, name), Direction::kUp), options_(o) {
    if (!o.average.empty() && o.average != "micro" && o.average != "macro" &&
        o.average != "weighted") {
      throw InvalidArgumentError(cat(name,
                                     ": average is \"micro\", \"macro\", \"weighted\" or none, not "
                                     "'",
                                     o.average, "'."));
    }
  }
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight) override {
    const bool micro = options_.average == "micro";
    if (!hits_.defined()) {
      const Shape shape = micro ? Shape{} : Shape{y_pred.dim(-1)};
      hits_ = add_variable("true_positives", shape);
      wrong_ = add_variable("false_positives", shape);
      missed_ = add_variable("false_negatives", shape);
      weights_ = add_variable("intermediate_weights", shape);
    }
    const Tensor truth = cast(y_true, float32);
    Tensor said;
    if (options_.threshold) {
      said = y_pred > *options_.threshold;
    } else {
      said = logical_and(y_pred >= reduce_max(y_pred, -1, true), abs(y_pred) > 1e-9);
    }
    const Tensor guess = cast(said, float32);
    const auto total = [&](const Tensor& x) {
      Tensor weighted = x;
      if (sample_weight.defined()) weighted = x * expand_dims(cast(sample_weight, float32), 1);
      return micro ? reduce_sum(weighted) : reduce_sum(weighted, 0);
    };
    hits_.assign_add(total(guess * truth));
    wrong_.assign_add(total(guess * (1.0 - truth)));
    missed_.assign_add(total((1.0 - guess) * truth));
    weights_.assign_add(total(truth));
  }
  Tensor result() const override {
    if (!hits_.defined()) return Tensor(0.0f);
    const Tensor hits = hits_.read_value();
    const Tensor precision = hits / (hits + wrong_.read_value() + kEpsilon);
    const Tensor recall = hits / (hits + missed_.read_value() + kEpsilon);
    const double beta2 = options_.beta * options_.beta;
    const Tensor score = precision * recall / (precision * beta2 + recall + kEpsilon) * (1 + beta2);
    if (options_.average == "macro") return reduce_mean(score);
    if (options_.average == "weighted") {
      const Tensor w = weights_.read_value();
      return reduce_sum(score * (w / (reduce_sum(w) + kEpsilon)));
    }
    return score;
  }

 private:
  FBetaOptions options_;
  Variable hits_, wrong_, missed_, weights_;
};

class R2Impl final : public MetricImpl {
 public:
  explicit R2Impl(const R2Options& o) : MetricImpl(name_or(o.name, "r2_score"), Direction::kUp) {}
  void update_state(const Tensor& given_true, const Tensor& given_pred,
                    const Tensor& sample_weight) override {
    Tensor y_true = cast(given_true, float32), y_pred = cast(given_pred, float32);
    if (y_true.rank() == 1) y_true = expand_dims(y_true, 1);
    if (y_pred.rank() == 1) y_pred = expand_dims(y_pred, 1);
    if (!squares_.defined()) {
      const Shape shape{y_pred.dim(-1)};
      squares_ = add_variable("squared_sum", shape);
      sum_ = add_variable("sum", shape);
      error_ = add_variable("residual", shape);
      count_ = add_variable("count", shape);
    }
    Tensor w = ones_like(y_true);
    if (sample_weight.defined()) w = w * expand_dims(cast(sample_weight, float32), 1);
    sum_.assign_add(reduce_sum(y_true * w, 0));
    squares_.assign_add(reduce_sum(y_true * y_true * w, 0));
    error_.assign_add(reduce_sum(square(y_true - y_pred) * w, 0));
    count_.assign_add(reduce_sum(w, 0));
  }
  Tensor result() const override {
    if (!squares_.defined()) return Tensor(0.0f);
    const Tensor sum = sum_.read_value();
    const Tensor spread = squares_.read_value() - sum * (sum / count_.read_value());
    const Tensor raw = 1.0 - error_.read_value() / spread;
    return reduce_mean(where(math::is_inf(raw), zeros_like(raw), raw));
  }

 private:
  Variable squares_, sum_, error_, count_;
};

Metric mean_of(const std::string& given, const char* name, Metric::Function function) {
  return Metric::from_function(name_or(given, name), std::move(function), Direction::kUp);
}

}  // namespace

IoU::IoU(const IoUOptions& o) : Metric(std::make_shared<IoUImpl>("io_u", o, Classes::kNumbers)) {}
MeanIoU::MeanIoU(const IoUOptions& o)
    : Metric(std::make_shared<IoUImpl>("mean_io_u", o, Classes::kNumbers)) {}
BinaryIoU::BinaryIoU(const IoUOptions& o)
    : Metric(std::make_shared<IoUImpl>("binary_io_u", o, Classes::kBinary)) {}
OneHotIoU::OneHotIoU(const IoUOptions& o)
    : Metric(std::make_shared<IoUImpl>("one_hot_io_u", o, Classes::kOneHot)) {}
OneHotMeanIoU::OneHotMeanIoU(const IoUOptions& o)
    : Metric(std::make_shared<IoUImpl>("one_hot_mean_io_u", o, Classes::kOneHot)) {}
FBetaScore::FBetaScore(const FBetaOptions& o)
    : Metric(std::make_shared<FBetaImpl>("fbeta_score", o)) {}
F1Score::F1Score(const FBetaOptions& o) : Metric(std::make_shared<FBetaImpl>("f1_score", o)) {}
R2Score::R2Score(const R2Options& o) : Metric(std::make_shared<R2Impl>(o)) {}
PearsonCorrelation::PearsonCorrelation(const R2Options& o)
    : Metric(mean_of(o.name, "pearson_correlation",
                     [](const Tensor& t, const Tensor& p) { return pearson_correlation(t, p); })) {}
ConcordanceCorrelation::ConcordanceCorrelation(const R2Options& o)
    : Metric(mean_of(o.name, "concordance_correlation", [](const Tensor& t, const Tensor& p) {
        return concordance_correlation(t, p);
      })) {}

Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred, double threshold) {
  const Tensor said = cast(y_pred > threshold, y_true.dtype());
  return cast(equal(y_true, said), float32);
}
Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  return cast(equal(argmax(y_true, -1), argmax(y_pred, -1)), float32);
}
Tensor sparse_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred) {
  Tensor labels = cast(y_true, int64);
  if (labels.rank() == y_pred.rank() && labels.dim(-1) == 1) labels = squeeze(labels, {-1});
  return cast(equal(labels, argmax(y_pred, -1)), float32);
}
Tensor top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred, std::int64_t k) {
  return sparse_top_k_categorical_accuracy(argmax(y_true, -1), y_pred, k);
}
Tensor sparse_top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred,
                                         std::int64_t k) {
  const Tensor flat =
      nn::in_top_k(cast(reshape(y_true, {-1}), int32), reshape(y_pred, {-1, y_pred.dim(-1)}), k);
  const Tensor rows = cast(flat, float32);
  return y_pred.rank() > 2 ? reshape(rows, IntList(shape(y_true))) : rows;
}
namespace {
struct Centred {
  Tensor t, p;  // of mean 0
  Tensor mean_t, mean_p, spread_t, spread_p;
};
Centred centred(const Tensor& y_true, const Tensor& given, std::int64_t axis) {
  const Tensor truth = cast(y_true, given.dtype());
  Centred c;
  c.mean_t = reduce_mean(truth, axis, true);
  c.mean_p = reduce_mean(given, axis, true);
  c.t = truth - c.mean_t;
  c.p = given - c.mean_p;
  c.spread_t = reduce_mean(square(c.t), axis, true);
  c.spread_p = reduce_mean(square(c.p), axis, true);
  return c;
}
}  // namespace
Tensor pearson_correlation(const Tensor& y_true, const Tensor& y_pred, std::int64_t axis) {
  const Centred c = centred(y_true, y_pred, axis);
  const Tensor t = c.t / maximum(sqrt(c.spread_t), kEpsilon),
               p = c.p / maximum(sqrt(c.spread_p), kEpsilon);
  return reduce_mean(t * p, axis);
}
Tensor concordance_correlation(const Tensor& y_true, const Tensor& y_pred, std::int64_t axis) {
  const Centred c = centred(y_true, y_pred, axis);
  const Tensor covariance = reduce_mean(c.t * c.p, axis, true);
  const Tensor all = c.spread_t + c.spread_p + square(c.mean_t - c.mean_p);
  return squeeze(2.0 * covariance / (all + kEpsilon), {axis});
}

}  // namespace tandem::keras::metrics
