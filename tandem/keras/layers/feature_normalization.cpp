#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/layers/preprocessing.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

class NormalizationImpl final : public LayerImpl {
 public:
  explicit NormalizationImpl(const NormalizationOptions& o)
      : LayerImpl("Normalization", {.name = o.name, .dtype = o.dtype}), options_(o) {
    if (o.mean.has_value() != o.variance.has_value()) {
      throw InvalidArgumentError(
          "Normalization: When setting values directly, both `mean` and `variance` must be set.");
    }
    if (o.mean && o.mean->size() != o.variance->size()) {
      throw InvalidArgumentError(cat("Normalization: `mean` and `variance` must be of one size, ",
                                     "got ", o.mean->size(), " and ", o.variance->size(), "."));
    }
  }

  void build(const PartialShape& input) override {
    kept_.clear();
    for (const int axis : options_.axis.value_or(std::vector<int>{}))
      kept_.push_back(normalize_axis(axis, input.rank()));
    std::sort(kept_.begin(), kept_.end());
    broadcast_.assign(static_cast<std::size_t>(input.rank()), 1);
    Shape features;
    for (const int axis : kept_) {
      features.add_dim(known_size(input, axis));
      broadcast_[static_cast<std::size_t>(axis)] = features.dim(-1);
    }
    if (options_.mean) return;
    const auto add = [&](const char* name, const Shape& shape, const char* initializer,
                         DType dtype) {
      return add_weight(name, shape,
                        {.initializer = initializer, .trainable = false, .dtype = dtype});
    };
    mean_ = add("mean", features, "zeros", float32);
    variance_ = add("variance", features, "ones", float32);
    // Keras keeps how many examples there were, for the sake of its older files.
    count_ = add("count", {}, "zeros", int64);
  }

  Tensor call(const Tensor& given, bool) override {
    const Tensor x = cast(given, compute_dtype());
    const Tensor mean = aligned(options_.mean, mean_, x.dtype());
    const Tensor deviation = maximum(sqrt(aligned(options_.variance, variance_, x.dtype())), 1e-7);
    return options_.invert ? mean + x * deviation : (x - mean) / deviation;
  }

  void begin() {
    if (options_.mean) {
      throw FailedPreconditionError(
          cat(prefix(), "mean and variance were given, so there is nothing to adapt."));
    }
    examples_ = 0;
    sums_.clear();
    squares_.clear();
  }
  void add(const Tensor& given) {
    ensure_built({given.partial_shape()});
    const Tensor x = cast(given, float64);
    std::vector<std::int64_t> axes;
    for (int i = 0; i < x.rank(); ++i) {
      if (std::find(kept_.begin(), kept_.end(), i) == kept_.end()) axes.push_back(i);
    }
    const auto sums = reshape(reduce_sum(x, axes), {-1}).to_vector<double>(),
               squares = reshape(reduce_sum(square(x), axes), {-1}).to_vector<double>();
    sums_.resize(sums.size());
    squares_.resize(squares.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums_[i] += sums[i];
      squares_[i] += squares[i];
    }
    examples_ += static_cast<double>(x.num_elements()) / static_cast<double>(sums.size());
  }
  void finish() {
    if (examples_ == 0) throw InvalidArgumentError(cat(prefix(), "adapt was given no data."));
    std::vector<float> mean, variance;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double m = sums_[i] / examples_;
      mean.push_back(static_cast<float>(m));
      variance.push_back(static_cast<float>(std::max(0.0, squares_[i] / examples_ - m * m)));
    }
    mean_.assign(reshape(Tensor::from(mean), mean_.shape().to_shape().to_vector()));
    variance_.assign(reshape(Tensor::from(variance), variance_.shape().to_shape().to_vector()));
  }

 private:
  // As it is subtracted from or divides the input: those given, or else the learnt ones.
  Tensor aligned(const std::optional<std::vector<double>>& given, const Variable& learnt,
                 DType dtype) const {
    const Tensor all = cast(given ? Tensor::from(*given) : learnt.read_value(), dtype);
    return given && given->size() == 1 ? reshape(all, IntList{}) : reshape(all, broadcast_);
  }

  NormalizationOptions options_;
  std::vector<int> kept_;
  std::vector<std::int64_t> broadcast_;
  std::vector<double> sums_, squares_;
  double examples_ = 0;
  Variable mean_, variance_, count_;
};

constexpr auto kArguments = [](auto& a, auto& o) {
  a("axis", o.axis);
  a("invert", o.invert);
  a("mean", o.mean);
  a("variance", o.variance);
};
const bool kRegistered = internal::register_layer_class<Normalization, NormalizationOptions>(
    "Normalization", kArguments);

NormalizationImpl& impl_of(const Normalization& layer) {
  return static_cast<NormalizationImpl&>(*layer.impl());
}

}  // namespace

Normalization::Normalization(const NormalizationOptions& options)
    : Layer(internal::with_arguments(std::make_shared<NormalizationImpl>(options), kArguments,
                                     options)) {}

void Normalization::adapt(const Tensor& data) const {
  impl_of(*this).begin();
  impl_of(*this).add(data);
  impl_of(*this).finish();
}

void Normalization::adapt(const data::Dataset& batches) const {
  impl_of(*this).begin();
  data::Iterator iterator = batches.iterator();
  for (data::Element element; iterator.next(element);) impl_of(*this).add(element[0]);
  impl_of(*this).finish();
}

}  // namespace tandem::keras
