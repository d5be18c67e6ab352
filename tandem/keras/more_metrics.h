#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/metric.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::metrics {

// Overlaps, scores of precision and recall together, and correlations; and the functions whose
// means the accuracies are.

struct IoUOptions {
  std::int64_t num_classes = 2;
  std::vector<std::int64_t> target_class_ids = {};  ///< whose mean it is; empty: all
  double threshold = 0.5;  ///< BinaryIoU: from here on a prediction is class 1
  String name = {};
  std::optional<std::int64_t> ignore_class = std::nullopt;
};
/// Intersection over union of class numbers, the mean over classes.
class TANDEM_EXPORT IoU : public Metric {
 public:
  explicit IoU(const IoUOptions& options);
};
/// … over all classes.
class TANDEM_EXPORT MeanIoU : public Metric {
 public:
  explicit MeanIoU(const IoUOptions& options);
  explicit MeanIoU(std::int64_t num_classes) : MeanIoU(IoUOptions{.num_classes = num_classes}) {}
};
/// … of probabilities of class 1.
class TANDEM_EXPORT BinaryIoU : public Metric {
 public:
  explicit BinaryIoU(const IoUOptions& options = {.target_class_ids = {0, 1}});
};
/// … of one-hot rows and rows of probabilities.
class TANDEM_EXPORT OneHotIoU : public Metric {
 public:
  explicit OneHotIoU(const IoUOptions& options);
};
class TANDEM_EXPORT OneHotMeanIoU : public Metric {
 public:
  explicit OneHotMeanIoU(const IoUOptions& options);
};

struct FBetaOptions {
  String average = {};  ///< "micro", "macro", "weighted", or one number a class
  double beta = 1;      ///< how much more recall counts
  std::optional<double> threshold = std::nullopt;  ///< of true predictions; the largest by default
  String name = {};
};
/// The harmonic mean of precision and recall, of rows of classes.
class TANDEM_EXPORT FBetaScore : public Metric {
 public:
  explicit FBetaScore(const FBetaOptions& options = {});
};
class TANDEM_EXPORT F1Score : public Metric {
 public:
  explicit F1Score(const FBetaOptions& options = {});
};
struct R2Options {
  String name = {};
};
/// 1 - Σ(y - ŷ)² / Σ(y - mean)², the mean over the outputs.
class TANDEM_EXPORT R2Score : public Metric {
 public:
  explicit R2Score(const R2Options& options = {});
};
/// Correlations of rows along the last axis, their mean.
class TANDEM_EXPORT PearsonCorrelation : public Metric {
 public:
  explicit PearsonCorrelation(const R2Options& options = {});
};
class TANDEM_EXPORT ConcordanceCorrelation : public Metric {
 public:
  explicit ConcordanceCorrelation(const R2Options& options = {});
};

// One value for each example.
TANDEM_EXPORT Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred,
                                     double threshold = 0.5);
TANDEM_EXPORT Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred);
TANDEM_EXPORT Tensor sparse_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred);
TANDEM_EXPORT Tensor top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred,
                                                std::int64_t k = 5);
TANDEM_EXPORT Tensor sparse_top_k_categorical_accuracy(const Tensor& y_true, const Tensor& y_pred,
                                                       std::int64_t k = 5);
TANDEM_EXPORT Tensor pearson_correlation(const Tensor& y_true, const Tensor& y_pred,
                                         std::int64_t axis = -1);
TANDEM_EXPORT Tensor concordance_correlation(const Tensor& y_true, const Tensor& y_pred,
                                             std::int64_t axis = -1);

struct OperatingPointOptions {
  std::int64_t num_thresholds = 200;
  std::optional<std::int64_t> class_id = std::nullopt;  ///< only this column
  String name = {};
};
// The best value of one measure among the thresholds at which another is at least as given.
class TANDEM_EXPORT SensitivityAtSpecificity : public Metric {
 public:
  explicit SensitivityAtSpecificity(double specificity, const OperatingPointOptions& options = {});
};
class TANDEM_EXPORT SpecificityAtSensitivity : public Metric {
 public:
  explicit SpecificityAtSensitivity(double sensitivity, const OperatingPointOptions& options = {});
};
class TANDEM_EXPORT PrecisionAtRecall : public Metric {
 public:
  explicit PrecisionAtRecall(double recall, const OperatingPointOptions& options = {});
};
class TANDEM_EXPORT RecallAtPrecision : public Metric {
 public:
  explicit RecallAtPrecision(double precision, const OperatingPointOptions& options = {});
};

}  // namespace tandem::keras::metrics
