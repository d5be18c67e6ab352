#include "tandem/core/error.h"
#include "tandem/keras/internal/align.h"
#include "tandem/keras/internal/logits.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/loss_functions.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::losses {

using internal::align;
using internal::kEpsilon;
using internal::LogitsKind;
using internal::shape_text;

namespace {

Tensor clip_probabilities(const Tensor& p) { return clip_by_value(p, kEpsilon, 1 - kEpsilon); }

// What softmax or sigmoid was given, if the predictions are logits or are known to come from there.
Tensor logits_of(LogitsKind kind, const Tensor& y_pred, bool from_logits) {
  Tensor logits = internal::find_logits(kind, y_pred);
  return logits.defined() || !from_logits ? logits : y_pred;
}

Tensor smoothed(const Tensor& labels, double smoothing, double share) {
  return smoothing == 0 ? labels : labels * (1 - smoothing) + smoothing * share;
}

double one_class_share(const std::string& who, const Tensor& labels, double smoothing) {
  if (smoothing == 0) return 1;
  const std::int64_t classes = labels.dim(-1);
  if (classes < 1) {
    throw InvalidArgumentError(
        cat(who, ": label_smoothing needs to know the number of classes; the labels have shape ",
            shape_text(labels.partial_shape()), "."));
  }
  return 1.0 / static_cast<double>(classes);
}

Tensor normalized(const Tensor& p, std::int64_t axis) {
  return clip_probabilities(p / reduce_sum(p, axis, true));
}

}  // namespace

Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                           const CrossentropyOptions& o) {
  const auto [labels, p] = align("binary_crossentropy", y_true, y_pred);
  const Tensor t = smoothed(labels, o.label_smoothing, 0.5);
  if (const Tensor logits = logits_of(LogitsKind::kSigmoid, p, o.from_logits); logits.defined()) {
    return reduce_mean(nn::sigmoid_cross_entropy_with_logits(t, logits), o.axis);
  }
  const Tensor q = clip_probabilities(p);
  return -reduce_mean(t * math::log(q) + (1 - t) * math::log(1 - q), o.axis);
}

Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                const CrossentropyOptions& o) {
  const auto [labels, p] = align("categorical_crossentropy", y_true, y_pred);
  const double share = one_class_share("categorical_crossentropy", labels, o.label_smoothing);
  const Tensor t = smoothed(labels, o.label_smoothing, share);
  if (const Tensor logits = logits_of(LogitsKind::kSoftmax, p, o.from_logits); logits.defined()) {
    return nn::softmax_cross_entropy_with_logits(t, logits, o.axis);
  }
  return -reduce_sum(t * math::log(normalized(p, o.axis)), o.axis);
}

namespace {

Tensor class_numbers(const Tensor& y_true, const Tensor& y_pred) {
  Tensor labels = y_true;
  if (labels.rank() == y_pred.rank() && labels.rank() > 0 && labels.dim(-1) == 1)
    labels = squeeze(labels, {-1});
  const PartialShape classes_last = y_pred.partial_shape();
  bool fits = true;
  if (labels.rank() >= 0 && classes_last.has_rank()) {
    fits = labels.rank() + 1 == classes_last.rank();
    if (fits) {
      std::vector<std::int64_t> wanted = classes_last.dims();
      wanted.pop_back();
      fits = labels.partial_shape().is_compatible(PartialShape(std::move(wanted)));
    }
  }
  if (!fits) {
    throw InvalidArgumentError(
        cat("sparse_categorical_crossentropy: labels are class numbers, one for each row of "
            "probabilities, but "
            "target.shape=",
            shape_text(y_true.partial_shape()), " and output.shape=", shape_text(classes_last),
            ". For one-hot labels use categorical_crossentropy."));
  }
  return is_integer(labels.dtype()) ? labels : cast(labels, int64);
}

}  // namespace

Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits,
                                       std::optional<std::int64_t> ignore_class) {
  Tensor labels = class_numbers(y_true, y_pred);
  if (labels.dtype() != int32 && labels.dtype() != int64) labels = cast(labels, int64);
  Tensor ignored;
  if (ignore_class) {
    ignored = equal(labels, constant(Tensor(*ignore_class), labels.dtype()));
    labels = where(ignored, zeros_like(labels), labels);
  }
  Tensor logits = logits_of(LogitsKind::kSoftmax, y_pred, from_logits);
  if (!logits.defined()) logits = math::log(clip_probabilities(y_pred));
  Tensor values = nn::sparse_softmax_cross_entropy_with_logits(labels, logits);
  return ignored.defined() ? where(ignored, zeros_like(values), values) : values;
}

Tensor binary_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                 const FocalOptions& o) {
  const auto [labels, prediction] = align("binary_focal_crossentropy", y_true, y_pred);
  const Tensor t = smoothed(labels, o.label_smoothing, 0.5);
  const Tensor p = o.from_logits ? sigmoid(prediction) : prediction;
  const Tensor q = clip_probabilities(p);
  Tensor values = -(t * math::log(q) + (1 - t) * math::log(1 - q));
  values = values * pow(1 - (t * p + (1 - t) * (1 - p)), o.gamma);
  if (o.apply_class_balancing) values = values * (t * o.alpha + (1 - t) * (1 - o.alpha));
  return reduce_mean(values, o.axis);
}

Tensor categorical_focal_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                      const FocalOptions& o) {
  const auto [labels, prediction] = align("categorical_focal_crossentropy", y_true, y_pred);
  const double share = one_class_share("categorical_focal_crossentropy", labels, o.label_smoothing);
  const Tensor t = smoothed(labels, o.label_smoothing, share);
  const Tensor p = normalized(o.from_logits ? nn::softmax(prediction, o.axis) : prediction, o.axis);
  return reduce_sum(-t * math::log(p) * pow(1 - p, o.gamma) * o.alpha, o.axis);
}

}  // namespace tandem::keras::losses
