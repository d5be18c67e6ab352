#include "tandem/keras/layers/feature_normalization.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

constexpr double kEpsilon = 1e-7;  // Keras' backend.epsilon()

class NormalizationImpl final : public LayerImpl {
 public:
  explicit NormalizationImpl(const NormalizationOptions& o)
      : LayerImpl("Normalization", {.name = o.name, .dtype = o.dtype}), options_(o) {
    if (o.mean.size() != o.variance.size()) {
      throw InvalidArgumentError(
          cat("Normalization: mean and variance must be given together and for as many features, ",
              "got ", o.mean.size(), " and ", o.variance.size(), "."));
    }
  }

  void build(const PartialShape& input) override {
    kept_.clear();
    for (int axis : options_.axis.list()) {
      const int found = axis < 0 ? axis + input.rank() : axis;
      if (found < 0 || found >= input.rank())
        throw InvalidArgumentError(cat(prefix(), "axis ", axis, " is none of the input's."));
      kept_.push_back(found);
    }
    std::sort(kept_.begin(), kept_.end());
    broadcast_.assign(static_cast<std::size_t>(input.rank()), 1);
    Shape features;
    for (const int axis : kept_) {
      features.add_dim(known_size(input, axis));
      broadcast_[static_cast<std::size_t>(axis)] = features.dim(-1);
    }
    if (!options_.mean.empty()) return;
    mean_ = add_weight("mean", features, {.initializer = "zeros", .trainable = false});
    variance_ = add_weight("variance", features, {.initializer = "ones", .trainable = false});
    // Keras keeps how many examples there were, for its older files.
    count_ = add_weight("count", {}, {.initializer = "zeros", .trainable = false, .dtype = int32});
  }

  Tensor call(const Tensor& x, bool) override {
    const Tensor mean = options_.mean.empty() ? Tensor(mean_) : given(options_.mean, x.dtype());
    const Tensor variance =
        options_.mean.empty() ? Tensor(variance_) : given(options_.variance, x.dtype());
    return (x - aligned(mean)) / maximum(sqrt(aligned(variance)), kEpsilon);
  }

  void adapt(const Tensor& data) {
    if (!options_.mean.empty())
      throw FailedPreconditionError(cat(prefix(),
                                        "mean and variance were given, so there is "
                                        "nothing to adapt."));
    ensure_built({data.partial_shape()});
    std::vector<std::int64_t> others;
    for (int axis = 0; axis < data.rank(); ++axis) {
      if (std::find(kept_.begin(), kept_.end(), axis) == kept_.end()) others.push_back(axis);
    }
    mean_.assign(reduce_mean(data, others));
    variance_.assign(math::reduce_variance(data, others));
  }

 private:
  static Tensor given(const std::vector<double>& values, DType dtype) {
    return cast(Tensor::from(values), dtype);
  }
  Tensor aligned(const Tensor& x) const {
    return x.num_elements() == 1 ? x : reshape(x, broadcast_);
  }

  NormalizationOptions options_;
  std::vector<int> kept_;
  std::vector<std::int64_t> broadcast_;
  Variable mean_, variance_, count_;
};

constexpr auto kArguments = [](auto& a, auto& o) {
  a("axis", o.axis);
  a("mean", o.mean);
  a("variance", o.variance);
};

}  // namespace

Normalization::Normalization(const NormalizationOptions& options)
    : Layer(internal::with_arguments(std::make_shared<NormalizationImpl>(options), kArguments,
                                     options)) {}

void Normalization::adapt(const Tensor& data) const {
  static_cast<NormalizationImpl&>(*impl()).adapt(data);
}

namespace {

const bool kRegistered = internal::register_layer_class<Normalization, NormalizationOptions>(
    "Normalization", kArguments);

}  // namespace

}  // namespace tandem::keras
