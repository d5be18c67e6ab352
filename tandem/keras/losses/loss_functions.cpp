#include "tandem/keras/loss_functions.h"

#include <cmath>

#include "tandem/core/error.h"
#include "tandem/keras/internal/align.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

// Losses of numbers, signs and distributions; crossentropies stand in crossentropy.cpp.

namespace tandem::keras::losses {

using internal::align;
using internal::kEpsilon;

Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("mean_squared_error", y_true, y_pred);
  return reduce_mean(math::squared_difference(t, p), -1);
}

Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("mean_absolute_error", y_true, y_pred);
  return reduce_mean(abs(t - p), -1);
}

Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("mean_absolute_percentage_error", y_true, y_pred);
  return reduce_mean(abs((t - p) / maximum(abs(t), kEpsilon)), -1) * 100;
}

Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("mean_squared_logarithmic_error", y_true, y_pred);
  const auto log_of = [](const Tensor& x) { return math::log(maximum(x, kEpsilon) + 1); };
  return reduce_mean(math::squared_difference(log_of(p), log_of(t)), -1);
}

Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred, std::int64_t axis) {
  const auto [t, p] = align("cosine_similarity", y_true, y_pred);
  return -reduce_sum(nn::l2_normalize(t, {axis}, kEpsilon * kEpsilon) *
                         nn::l2_normalize(p, {axis}, kEpsilon * kEpsilon),
                     axis);
}

Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta) {
  const auto [t, p] = align("huber", y_true, y_pred);
  const Tensor error = p - t;
  const Tensor size = abs(error);
  return reduce_mean(where(size <= delta, square(error) * 0.5, size * delta - 0.5 * delta * delta),
                     -1);
}

Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("log_cosh", y_true, y_pred);
  const Tensor error = p - t;
  return reduce_mean(error + nn::softplus(error * -2) - std::log(2.0), -1);
}

Tensor poisson(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("poisson", y_true, y_pred);
  return reduce_mean(p - t * math::log(p + kEpsilon), -1);
}

Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("kl_divergence", y_true, y_pred);
  const Tensor truth = clip_by_value(t, kEpsilon, 1);
  return reduce_sum(truth * math::log(truth / clip_by_value(p, kEpsilon, 1)), -1);
}

namespace {

// Labels -1 and 1: if all are 0 or 1, they are moved there.
Tensor signs(const Tensor& labels) {
  const Tensor binary = reduce_all(logical_or(labels == 0, labels == 1));
  return where(binary, labels * 2 - 1, labels);
}

}  // namespace

Tensor hinge(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("hinge", y_true, y_pred);
  return reduce_mean(maximum(1 - signs(t) * p, 0), -1);
}

Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("squared_hinge", y_true, y_pred);
  return reduce_mean(square(maximum(1 - signs(t) * p, 0)), -1);
}

Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred) {
  const auto [t, p] = align("categorical_hinge", y_true, y_pred);
  return maximum(reduce_max((1 - t) * p, -1) - reduce_sum(t * p, -1) + 1, 0);
}

namespace {

Tensor sum_over(const Tensor& x, const std::vector<std::int64_t>& axis) {
  return axis.empty() ? reduce_sum(x) : reduce_sum(x, axis);
}

}  // namespace

Tensor dice(const Tensor& y_true, const Tensor& y_pred, const std::vector<std::int64_t>& axis) {
  const auto [t, p] = align("dice", y_true, y_pred);
  return 1 - sum_over(t * p, axis) * 2 / (sum_over(t, axis) + sum_over(p, axis) + kEpsilon);
}

Tensor tversky(const Tensor& y_true, const Tensor& y_pred, double alpha, double beta,
               const std::vector<std::int64_t>& axis) {
  const auto [t, p] = align("tversky", y_true, y_pred);
  const Tensor both = sum_over(t * p, axis);
  const Tensor missed = sum_over((1 - p) * t, axis);
  const Tensor invented = sum_over((1 - t) * p, axis);
  return 1 - both / (both + missed * alpha + invented * beta + kEpsilon);
}

}  // namespace tandem::keras::losses
