#include "tandem/keras/layers/normalization.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/precision.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

// A weight as the sums take it.
Tensor full(const Variable& weight) { return internal::in_full_precision(weight.read_value()); }

class BatchNormalizationImpl final : public LayerImpl {
 public:
  explicit BatchNormalizationImpl(const BatchNormalizationOptions& o)
      : LayerImpl("BatchNormalization",
                  {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        options_(o) {
    internal::require_range("BatchNormalization", "momentum", o.momentum, 0, 1);
    internal::require_range("BatchNormalization", "epsilon", o.epsilon, 0, 1e30);
    pass_masks();
  }

  void build(const PartialShape& input) override {
    axis_ = normalize_axis(options_.axis, input.rank());
    const std::int64_t size = known_size(input, axis_);
    const auto add = [&](const char* name, const Initializer& initializer,
                         const Regularizer& regularizer, const Constraint& constraint,
                         bool trainable) {
      return add_weight(name, {size},
                        {.initializer = initializer,
                         .regularizer = regularizer,
                         .constraint = constraint,
                         .trainable = trainable,
                         .autocast = false});
    };
    if (options_.scale)
      gamma_ = add("gamma", options_.gamma_initializer, options_.gamma_regularizer,
                   options_.gamma_constraint, true);
    if (options_.center)
      beta_ = add("beta", options_.beta_initializer, options_.beta_regularizer,
                  options_.beta_constraint, true);
    mean_ = add("moving_mean", options_.moving_mean_initializer, {}, {}, false);
    variance_ = add("moving_variance", options_.moving_variance_initializer, {}, {}, false);
    require_rank(input.rank());
    require_size(axis_, size);
  }

  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (inputs.size() != 1) {
      throw InvalidArgumentError(cat(prefix(), "takes one input, got ", inputs.size(), "."));
    }
    const bool last = axis_ == inputs[0].rank() - 1;
    const bool learns = how.is_training() && trainable();
    const Tensor mask = how.mask_of(0);
    // The fused op computes moments and result in one pass, and in float32 whatever it is given;
    // its variance is the unbiased one, so the running mean must take back what it adds.
    if (learns && last && inputs[0].rank() == 4 && fusible(inputs[0].dtype()) && !mask.defined())
      return {fused(inputs[0])};
    const Tensor x = internal::in_full_precision(inputs[0]);
    if (!learns) return {result(apply(x, full(mean_), full(variance_), last))};
    const nn::Moments batch =
        mask.defined() ? masked_moments(x, mask) : nn::moments(x, other_axes(x.rank()));
    follow(batch.mean, batch.variance);
    return {result(apply(x, batch.mean, batch.variance, last))};
  }

 private:
  std::vector<std::int64_t> other_axes(int rank) const {
    std::vector<std::int64_t> axes;
    for (int i = 0; i < rank; ++i) {
      if (i != axis_) axes.push_back(i);
    }
    return axes;
  }

  // Moments of what the mask leaves; it has one axis less than x, the features'. Keras adds 1e-7 to
  // the number of elements.
  nn::Moments masked_moments(const Tensor& x, const Tensor& mask) const {
    if (mask.rank() != x.rank() - 1) {
      throw InvalidArgumentError(cat(prefix(), "the mask must have one axis less than the input, ",
                                     "whose shape is ", x.partial_shape(), ", but has shape ",
                                     mask.partial_shape(), "."));
    }
    const std::vector<std::int64_t> axes = other_axes(x.rank());
    const Tensor keep =
        logical_or(expand_dims(cast(mask, DType::kBool), -1), zeros_like(cast(x, DType::kBool)));
    const Tensor nothing = zeros_like(x);
    const Tensor count = reduce_sum(cast(keep, x.dtype()), axes, true) + 1e-7;
    const Tensor mean = reduce_sum(where(keep, x, nothing), axes, true) / count;
    const Tensor away = where(keep, x - mean, nothing);
    const Tensor variance = reduce_sum(math::square(away), axes, true) / count;
    return {reshape(mean, {-1}), reshape(variance, {-1})};
  }

  bool fusible(DType x) const {
    return variable_dtype() == float32 && (x == float32 || x == bfloat16 || x == float16);
  }
  Tensor result(const Tensor& y) const {
    return y.dtype() == compute_dtype() ? y : cast(y, compute_dtype());
  }

  void follow(const Tensor& mean, const Tensor& variance) const {
    const double m = options_.momentum;
    mean_.assign(cast(full(mean_) * m + mean * (1 - m), mean_.dtype()));
    variance_.assign(cast(full(variance_) * m + variance * (1 - m), variance_.dtype()));
  }

  Tensor fused(const Tensor& x) const {
    const Tensor gamma = options_.scale ? gamma_.read_value() : ones(mean_.shape().to_shape());
    const Tensor beta = options_.center ? beta_.read_value() : zeros(mean_.shape().to_shape());
    const nn::FusedBatchNormResult result =
        nn::fused_batch_norm(x, gamma, beta, {.epsilon = static_cast<float>(options_.epsilon)});
    const PartialShape shape = x.partial_shape();
    Tensor biased;
    if (shape.is_fully_known()) {
      const double count = static_cast<double>(shape.num_elements() / shape.dim(3));
      biased = result.variance * (count > 1 ? (count - 1) / count : 1.0);
    } else {
      const Tensor count = cast(size(x), float32) / static_cast<double>(shape.dim(3));
      biased = result.variance * (maximum(count - 1, 1) / count);
    }
    follow(result.mean, biased);
    return result.y;
  }

  Tensor apply(const Tensor& x, const Tensor& mean, const Tensor& variance, bool last) const {
    const auto fit = [&](const Tensor& v) {
      if (last) return v;
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.rank()), 1);
      sizes[static_cast<std::size_t>(axis_)] = -1;
      return reshape(v, sizes);
    };
    return nn::batch_normalization(x, fit(mean), fit(variance),
                                   options_.center ? fit(full(beta_)) : Tensor(),
                                   options_.scale ? fit(full(gamma_)) : Tensor(), options_.epsilon);
  }

  BatchNormalizationOptions options_;
  int axis_ = -1;
  Variable gamma_;
  Variable beta_;
  Variable mean_;
  Variable variance_;
};

class LayerNormalizationImpl final : public LayerImpl {
 public:
  explicit LayerNormalizationImpl(const LayerNormalizationOptions& o)
      : LayerImpl("LayerNormalization",
                  {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        options_(o) {
    internal::require_range("LayerNormalization", "epsilon", o.epsilon, 0, 1e30);
    pass_masks();
    if (o.axis.list().empty())
      throw InvalidArgumentError("LayerNormalization: axis names no axis.");
  }

  void build(const PartialShape& input) override {
    axes_.clear();
    for (const int axis : options_.axis.list()) axes_.push_back(normalize_axis(axis, input.rank()));
    std::sort(axes_.begin(), axes_.end());
    Shape sizes;
    for (const std::int64_t axis : axes_) {
      sizes.add_dim(known_size(input, static_cast<int>(axis)));
      require_size(static_cast<int>(axis), sizes.dim(-1));
    }
    if (options_.scale) {
      gamma_ = add_weight("gamma", sizes,
                          {.initializer = options_.gamma_initializer,
                           .regularizer = options_.gamma_regularizer,
                           .constraint = options_.gamma_constraint,
                           .autocast = false});
    }
    if (options_.center) {
      beta_ = add_weight("beta", sizes,
                         {.initializer = options_.beta_initializer,
                          .regularizer = options_.beta_regularizer,
                          .constraint = options_.beta_constraint,
                          .autocast = false});
    }
    require_rank(input.rank());
  }

  Tensor call(const Tensor& input, bool) override {
    const Tensor x = internal::in_full_precision(input);
    const nn::Moments m = nn::moments(x, axes_, true);
    Tensor factor = math::rsqrt(m.variance + options_.epsilon);
    if (options_.scale) factor = factor * fit(gamma_, x.rank());
    Tensor offset = -m.mean * factor;
    if (options_.center) offset = offset + fit(beta_, x.rank());
    const Tensor y = x * factor + offset;
    return y.dtype() == compute_dtype() ? y : cast(y, compute_dtype());
  }

 private:
  // With sizes of 1 for the axes that are not normalised.
  Tensor fit(const Variable& weight, int rank) const {
    if (axes_.size() == 1 && axes_[0] == rank - 1) return full(weight);
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank), 1);
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      sizes[static_cast<std::size_t>(axes_[i])] = weight.shape().dim(static_cast<int>(i));
    }
    return reshape(full(weight), sizes);
  }

  LayerNormalizationOptions options_;
  std::vector<std::int64_t> axes_;
  Variable gamma_;
  Variable beta_;
};

constexpr auto kBatch = [](auto& a, auto& o) {
  a("axis", o.axis);
  a("momentum", o.momentum);
  a("epsilon", o.epsilon);
  a("center", o.center);
  a("scale", o.scale);
  a("beta_initializer", o.beta_initializer);
  a("gamma_initializer", o.gamma_initializer);
  a("moving_mean_initializer", o.moving_mean_initializer);
  a("moving_variance_initializer", o.moving_variance_initializer);
  a("beta_regularizer", o.beta_regularizer);
  a("beta_constraint", o.beta_constraint);
  a("gamma_regularizer", o.gamma_regularizer);
  a("gamma_constraint", o.gamma_constraint);
  a.ignore("renorm_momentum");
};
constexpr auto kLayer = [](auto& a, auto& o) {
  a("axis", o.axis);
  a("epsilon", o.epsilon);
  a("center", o.center);
  a("scale", o.scale);
  a("beta_initializer", o.beta_initializer);
  a("gamma_initializer", o.gamma_initializer);
  a("beta_regularizer", o.beta_regularizer);
  a("beta_constraint", o.beta_constraint);
  a("gamma_regularizer", o.gamma_regularizer);
  a("gamma_constraint", o.gamma_constraint);
};

}  // namespace

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : Layer(internal::with_arguments(std::make_shared<BatchNormalizationImpl>(options), kBatch,
                                     options)) {}
LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : Layer(internal::with_arguments(std::make_shared<LayerNormalizationImpl>(options), kLayer,
                                     options)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<BatchNormalization, BatchNormalizationOptions>(
        "BatchNormalization", kBatch),
    internal::register_layer_class<LayerNormalization, LayerNormalizationOptions>(
        "LayerNormalization", kLayer)};
}  // namespace

}  // namespace tandem::keras
