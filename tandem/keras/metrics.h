#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/metric.h"
#include "tandem/keras/positional.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::metrics {

// Metrics as objects. Their names are as in Keras ("mean_squared_error") unless another is given.

struct MetricOptions {
  String name = {};
};

/// The mean of values that are given directly.
class TANDEM_EXPORT Mean : public Metric {
 public:
  explicit Mean(const MetricOptions& options = {});
  template <internal::Text T>
  explicit Mean(const T& name) : Mean(MetricOptions{.name = name}) {}
  void update_state(const Tensor& values, const Tensor& sample_weight = {}) const;
  /// Takes the values in and returns the result so far.
  Tensor operator()(const Tensor& values, const Tensor& sample_weight = {}) const {
    update_state(values, sample_weight);
    return result();
  }
};
/// Their sum.
class TANDEM_EXPORT Sum : public Metric {
 public:
  explicit Sum(const MetricOptions& options = {});
  template <internal::Text T>
  explicit Sum(const T& name) : Sum(MetricOptions{.name = name}) {}
  void update_state(const Tensor& values, const Tensor& sample_weight = {}) const;
  /// Takes the values in and returns the result so far.
  Tensor operator()(const Tensor& values, const Tensor& sample_weight = {}) const {
    update_state(values, sample_weight);
    return result();
  }
};

// Means over the examples of what the loss of the same name computes.
#define TANDEM_KERAS_METRIC(NAME)                                       \
  class TANDEM_EXPORT NAME : public Metric {                            \
   public:                                                              \
    explicit NAME(const MetricOptions& options = {});                   \
    template <internal::Text T>                                         \
    explicit NAME(const T& name) : NAME(MetricOptions{.name = name}) {} \
  }
TANDEM_KERAS_METRIC(MeanSquaredError);
TANDEM_KERAS_METRIC(MeanAbsoluteError);
TANDEM_KERAS_METRIC(MeanAbsolutePercentageError);
TANDEM_KERAS_METRIC(MeanSquaredLogarithmicError);
TANDEM_KERAS_METRIC(LogCoshError);
TANDEM_KERAS_METRIC(Poisson);
TANDEM_KERAS_METRIC(KLDivergence);
TANDEM_KERAS_METRIC(Hinge);
TANDEM_KERAS_METRIC(SquaredHinge);
TANDEM_KERAS_METRIC(CategoricalHinge);
/// The root of the mean over all numbers.
TANDEM_KERAS_METRIC(RootMeanSquaredError);
/// The cosine itself: 1 is the best.
TANDEM_KERAS_METRIC(CosineSimilarity);
/// How often labels and predictions are equal.
TANDEM_KERAS_METRIC(Accuracy);
/// How often the most probable class is the one that one-hot labels name.
TANDEM_KERAS_METRIC(CategoricalAccuracy);
/// … that labels name by its number.
TANDEM_KERAS_METRIC(SparseCategoricalAccuracy);
#undef TANDEM_KERAS_METRIC

struct CrossentropyMetricOptions {
  bool from_logits = false;
  double label_smoothing = 0;
  String name = {};
};
class TANDEM_EXPORT BinaryCrossentropy : public Metric {
 public:
  explicit BinaryCrossentropy(const CrossentropyMetricOptions& options = {});
};
class TANDEM_EXPORT CategoricalCrossentropy : public Metric {
 public:
  explicit CategoricalCrossentropy(const CrossentropyMetricOptions& options = {});
};
class TANDEM_EXPORT SparseCategoricalCrossentropy : public Metric {
 public:
  explicit SparseCategoricalCrossentropy(const CrossentropyMetricOptions& options = {});
};

struct BinaryAccuracyOptions {
  String name = {};
  double threshold = 0.5;
};
/// How often probabilities fall on the side of the threshold that the labels 0 and 1 say.
class TANDEM_EXPORT BinaryAccuracy : public Metric {
 public:
  explicit BinaryAccuracy(const BinaryAccuracyOptions& options = {});
};

struct TopKOptions {
  std::int64_t k = 5;
  String name = {};
};
/// How often the label's class is among the k most probable.
class TANDEM_EXPORT TopKCategoricalAccuracy : public Metric {
 public:
  explicit TopKCategoricalAccuracy(const TopKOptions& options = {});
  template <internal::Integer T>
  explicit TopKCategoricalAccuracy(T k, const TopKOptions& options = {})
      : TopKCategoricalAccuracy(internal::with_argument(options, &TopKOptions::k, k, "k")) {}
};
class TANDEM_EXPORT SparseTopKCategoricalAccuracy : public Metric {
 public:
  explicit SparseTopKCategoricalAccuracy(const TopKOptions& options = {});
  template <internal::Integer T>
  explicit SparseTopKCategoricalAccuracy(T k, const TopKOptions& options = {})
      : SparseTopKCategoricalAccuracy(internal::with_argument(options, &TopKOptions::k, k, "k")) {}
};

struct CountOptions {
  std::vector<double> thresholds = {};  ///< 0.5 by default; with several the result is a vector
  String name = {};
};
class TANDEM_EXPORT TruePositives : public Metric {
 public:
  explicit TruePositives(const CountOptions& options = {});
};
class TANDEM_EXPORT TrueNegatives : public Metric {
 public:
  explicit TrueNegatives(const CountOptions& options = {});
};
class TANDEM_EXPORT FalsePositives : public Metric {
 public:
  explicit FalsePositives(const CountOptions& options = {});
};
class TANDEM_EXPORT FalseNegatives : public Metric {
 public:
  explicit FalseNegatives(const CountOptions& options = {});
};

struct PrecisionOptions {
  std::vector<double> thresholds = {};  ///< 0.5 by default; with several the result is a vector
  std::optional<std::int64_t> top_k = std::nullopt;     ///< only the k largest predictions count
  std::optional<std::int64_t> class_id = std::nullopt;  ///< only this column counts
  String name = {};
};
/// The share of true ones among what is predicted true.
class TANDEM_EXPORT Precision : public Metric {
 public:
  explicit Precision(const PrecisionOptions& options = {});
};
/// The share of what is predicted true among the true ones.
class TANDEM_EXPORT Recall : public Metric {
 public:
  explicit Recall(const PrecisionOptions& options = {});
};

struct AUCOptions {
  std::int64_t num_thresholds = 200;
  String curve = "ROC";                       ///< or "PR"
  String summation_method = "interpolation";  ///< or "minoring", "majoring"
  String name = {};
  bool from_logits = false;
};
/// The area under the curve of true against false positives, or of precision against recall. Its
/// result is computed on the host, so it cannot be traced.
class TANDEM_EXPORT AUC : public Metric {
 public:
  explicit AUC(const AUCOptions& options = {});
};

}  // namespace tandem::keras::metrics
