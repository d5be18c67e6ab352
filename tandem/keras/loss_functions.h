#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/runtime/tensor.h"

namespace tandem::keras::losses {

// Losses as functions: one value for each example, not reduced over the batch. Both arguments have
// shape [batch, …]; y_true is cast to y_pred's dtype, and an axis of size 1 that one of the two has
// at its end is no obstacle. InvalidArgumentError if the shapes do not fit.

TANDEM_EXPORT Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred);
TANDEM_EXPORT Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred);
/// In percent of |y_true|.
TANDEM_EXPORT Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred);
TANDEM_EXPORT Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred);
/// Minus the cosine of the angle between the vectors along `axis`: -1 is the best.
TANDEM_EXPORT Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred,
                                       std::int64_t axis = -1);
/// Quadratic up to `delta`, then linear.
TANDEM_EXPORT Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta = 1.0);
TANDEM_EXPORT Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred);
TANDEM_EXPORT Tensor poisson(const Tensor& y_true, const Tensor& y_pred);
TANDEM_EXPORT Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred);
/// Labels -1 and 1; labels 0 and 1 are converted.
TANDEM_EXPORT Tensor hinge(const Tensor& y_true, const Tensor& y_pred);
TANDEM_EXPORT Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred);
TANDEM_EXPORT Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred);

struct CrossentropyOptions {
  bool from_logits = false;    ///< y_pred is not probabilities but what softmax or sigmoid takes
  double label_smoothing = 0;  ///< moves the labels towards the middle
  std::int64_t axis = -1;
};
/// The crossentropy of independent probabilities, averaged along the axis.
TANDEM_EXPORT Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                         const CrossentropyOptions& options = {});
/// The crossentropy of one-hot labels, or of probabilities of the classes.
TANDEM_EXPORT Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                              const CrossentropyOptions& options = {});
/// The crossentropy of labels that are class numbers: y_true [batch, …] or [batch, …, 1], y_pred
/// [batch, …, classes]. A label out of range throws InvalidArgumentError.
TANDEM_EXPORT Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                                     bool from_logits = false,
                                                     std::optional<std::int64_t> ignore_class = {});

struct FocalOptions {
  double alpha = 0.25;
  double gamma = 2.0;
  bool apply_class_balancing = false;  ///< binary only
  bool from_logits = false;
  double label_smoothing = 0;
  std::int64_t axis = -1;
};
TANDEM_EXPORT Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                               const FocalOptions& options = {});
TANDEM_EXPORT Tensor categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                                    const FocalOptions& options = {});

/// 1 − 2 Σ y_true y_pred / (Σ y_true + Σ y_pred), sums over `axis` (all axes if empty).
TANDEM_EXPORT Tensor dice(const Tensor& y_true, const Tensor& y_pred,
                          const std::vector<std::int64_t>& axis = {});
/// Like dice, with weights for false positives and false negatives.
TANDEM_EXPORT Tensor tversky(const Tensor& y_true, const Tensor& y_pred, double alpha = 0.5,
                             double beta = 0.5, const std::vector<std::int64_t>& axis = {});

}  // namespace tandem::keras::losses
