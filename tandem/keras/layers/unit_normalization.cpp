#include "tandem/keras/layers/unit_normalization.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/precision.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

// A weight as the sums take it.
Tensor full(const Variable& weight) { return internal::in_full_precision(weight.read_value()); }

class GroupNormalizationImpl final : public LayerImpl {
 public:
  explicit GroupNormalizationImpl(const GroupNormalizationOptions& o)
      : LayerImpl("GroupNormalization",
                  {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        options_(o) {
    if (o.groups != -1) internal::require_positive("GroupNormalization", "groups", o.groups);
    internal::require_range("GroupNormalization", "epsilon", o.epsilon, 0, 1e30);
    require_min_rank(2);
    pass_masks();
  }

  void build(const PartialShape& input) override {
    axis_ = normalize_axis(options_.axis, input.rank());
    if (axis_ == 0) throw InvalidArgumentError(cat(prefix(), "axis names the batch."));
    channels_ = known_size(input, axis_);
    groups_ = options_.groups == -1 ? channels_ : options_.groups;
    if (channels_ % groups_ != 0) {
      throw InvalidArgumentError(cat(prefix(), "the ", channels_, " channels cannot be split into ",
                                     groups_, " groups of equal size."));
    }
    if (options_.scale) {
      gamma_ = add_weight("gamma", {channels_},
                          {.initializer = options_.gamma_initializer,
                           .regularizer = options_.gamma_regularizer,
                           .constraint = options_.gamma_constraint,
                           .autocast = false});
    }
    if (options_.center) {
      beta_ = add_weight("beta", {channels_},
                         {.initializer = options_.beta_initializer,
                          .regularizer = options_.beta_regularizer,
                          .constraint = options_.beta_constraint,
                          .autocast = false});
    }
    require_rank(input.rank());
    require_size(axis_, channels_);
  }

  Tensor call(const Tensor& x, bool) override {
    const Tensor sizes = shape(x);
    const std::vector<Tensor> size = unstack(sizes, x.rank());
    const auto group = static_cast<int>(groups_);
    const auto each = static_cast<int>(channels_ / groups_);
    std::vector<Tensor> split;
    std::vector<std::int64_t> axes;
    std::vector<std::int64_t> fit;
    for (int i = 0; i < x.rank(); ++i) {
      if (i == axis_) {
        split.push_back(Tensor(group));
        fit.push_back(group);
      }
      if (i > 0) axes.push_back(static_cast<std::int64_t>(split.size()));
      split.push_back(i == axis_ ? Tensor(each) : size[static_cast<std::size_t>(i)]);
      fit.push_back(i == axis_ ? each : 1);
    }
    const Tensor groups = reshape(internal::in_full_precision(x), IntList(stack(split)));
    const nn::Moments m = nn::moments(groups, axes, true);
    Tensor factor = math::rsqrt(m.variance + options_.epsilon);
    if (options_.scale) factor = factor * reshape(full(gamma_), fit);
    Tensor offset = -m.mean * factor;
    if (options_.center) offset = offset + reshape(full(beta_), fit);
    Tensor y = groups * factor + offset;
    if (y.dtype() != compute_dtype()) y = cast(y, compute_dtype());
    const PartialShape known = x.partial_shape();
    return known.is_fully_known() ? reshape(y, known.to_shape()) : reshape(y, IntList(sizes));
  }

 private:
  GroupNormalizationOptions options_;
  int axis_ = -1;
  std::int64_t channels_ = 0;
  std::int64_t groups_ = 0;
  Variable gamma_;
  Variable beta_;
};

class RMSNormalizationImpl final : public LayerImpl {
 public:
  explicit RMSNormalizationImpl(const RMSNormalizationOptions& o)
      : LayerImpl("RMSNormalization", {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
        options_(o) {
    internal::require_range("RMSNormalization", "epsilon", o.epsilon, 0, 1e30);
    if (o.axis.list().empty()) throw InvalidArgumentError("RMSNormalization: axis names no axis.");
  }

  void build(const PartialShape& input) override {
    axes_.clear();
    for (const int axis : options_.axis.list()) axes_.push_back(normalize_axis(axis, input.rank()));
    std::sort(axes_.begin(), axes_.end());
    Shape sizes;
    fit_.assign(static_cast<std::size_t>(input.rank()), 1);
    for (const std::int64_t axis : axes_) {
      sizes.add_dim(known_size(input, static_cast<int>(axis)));
      require_size(static_cast<int>(axis), sizes.dim(-1));
      fit_[static_cast<std::size_t>(axis)] = sizes.dim(-1);
    }
    scale_ = add_weight("scale", sizes, {.initializer = "ones", .autocast = false});
    require_rank(input.rank());
  }

  Tensor call(const Tensor& input, bool) override {
    const Tensor x = internal::in_full_precision(input);
    const Tensor mean = reduce_mean(math::square(x), axes_, true);
    const Tensor y = x * math::rsqrt(mean + options_.epsilon) * reshape(full(scale_), fit_);
    return y.dtype() == compute_dtype() ? y : cast(y, compute_dtype());
  }

 private:
  RMSNormalizationOptions options_;
  std::vector<std::int64_t> axes_;
  std::vector<std::int64_t> fit_;
  Variable scale_;
};

class UnitNormalizationImpl final : public LayerImpl {
 public:
  explicit UnitNormalizationImpl(const UnitNormalizationOptions& o)
      : LayerImpl("UnitNormalization", {.name = o.name, .dtype = o.dtype}),
        axes_(o.axis.list().begin(), o.axis.list().end()) {
    if (axes_.empty()) throw InvalidArgumentError("UnitNormalization: axis names no axis.");
    without_weights();
    pass_masks();
  }

  Tensor call(const Tensor& x, bool) override {
    const Tensor inverse = math::rsqrt(reduce_sum(math::square(x), axes_, true));
    return x * minimum(inverse, 1e12);
  }

 private:
  std::vector<std::int64_t> axes_;
};

constexpr auto kGroup = [](auto& a, auto& o) {
  a("groups", o.groups);
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
constexpr auto kRms = [](auto& a, auto& o) {
  a("axis", o.axis);
  a("epsilon", o.epsilon);
};
constexpr auto kUnit = [](auto& a, auto& o) { a("axis", o.axis); };

}  // namespace

GroupNormalization::GroupNormalization(const GroupNormalizationOptions& options)
    : Layer(internal::with_arguments(std::make_shared<GroupNormalizationImpl>(options), kGroup,
                                     options)) {}
RMSNormalization::RMSNormalization(const RMSNormalizationOptions& options)
    : Layer(internal::with_arguments(std::make_shared<RMSNormalizationImpl>(options), kRms,
                                     options)) {}
UnitNormalization::UnitNormalization(const UnitNormalizationOptions& options)
    : Layer(internal::with_arguments(std::make_shared<UnitNormalizationImpl>(options), kUnit,
                                     options)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<GroupNormalization, GroupNormalizationOptions>(
        "GroupNormalization", kGroup),
    internal::register_layer_class<RMSNormalization, RMSNormalizationOptions>("RMSNormalization",
                                                                              kRms),
    internal::register_layer_class<UnitNormalization, UnitNormalizationOptions>("UnitNormalization",
                                                                                kUnit)};
}  // namespace

}  // namespace tandem::keras
