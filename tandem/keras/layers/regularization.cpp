#include "tandem/keras/layers/regularization.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"

namespace tandem::keras {
namespace {

ConfigValue seed_value(const std::optional<std::int64_t>& seed) {
  return seed ? ConfigValue(*seed) : ConfigValue();
}

class DropoutImpl final : public LayerImpl {
 public:
  DropoutImpl(double rate, const DropoutOptions& o)
      : LayerImpl("Dropout", {.name = o.name}), rate_(rate), options_(o) {
    if (!(rate >= 0 && rate < 1)) {
      throw InvalidArgumentError(
          cat("Dropout: Invalid value received for argument `rate`. Expected a value from 0 up to "
              "and without 1. Received: rate=",
              rate, "."));
    }
    without_weights();
  }

  Tensor call(const Tensor& x, bool training) override {
    if (!training || rate_ == 0) return x;
    nn::DropoutOptions how{.seed = options_.seed};
    if (!options_.noise_shape.empty()) how.noise_shape = noise_shape(x);
    return nn::dropout(x, rate_, how);
  }
  void describe(Config& config) const override {
    config.set("rate", rate_)
        .set("seed", seed_value(options_.seed))
        .set("noise_shape", options_.noise_shape);
  }

 private:
  Tensor noise_shape(const Tensor& x) const {
    const auto& wanted = options_.noise_shape;
    if (static_cast<int>(wanted.size()) != x.rank()) {
      throw InvalidArgumentError(cat(prefix(), "noise_shape has ", wanted.size(),
                                     " sizes, but the input has shape ", x.partial_shape(), "."));
    }
    std::vector<Tensor> sizes;
    const std::vector<Tensor> given = unstack(shape(x), x.rank());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      sizes.push_back(wanted[i] < 0 ? given[i] : Tensor(static_cast<int>(wanted[i])));
    }
    return stack(sizes);
  }

  double rate_;
  DropoutOptions options_;
};

class GaussianNoiseImpl final : public LayerImpl {
 public:
  GaussianNoiseImpl(double stddev, const GaussianNoiseOptions& o)
      : LayerImpl("GaussianNoise", {.name = o.name}), stddev_(stddev), seed_(o.seed) {
    internal::require_range("GaussianNoise", "stddev", stddev, 0, 1e30);
    without_weights();
  }

  Tensor call(const Tensor& x, bool training) override {
    if (!training || stddev_ == 0) return x;
    return x + random::normal(IntList(shape(x)),
                              {.stddev = stddev_, .dtype = x.dtype(), .seed = seed_});
  }
  void describe(Config& config) const override {
    config.set("stddev", stddev_).set("seed", seed_value(seed_));
  }

 private:
  double stddev_;
  std::optional<std::int64_t> seed_;
};

}  // namespace

Dropout::Dropout(double rate, const DropoutOptions& options)
    : Layer(std::make_shared<DropoutImpl>(rate, options)) {}
GaussianNoise::GaussianNoise(double stddev, const GaussianNoiseOptions& options)
    : Layer(std::make_shared<GaussianNoiseImpl>(stddev, options)) {}

}  // namespace tandem::keras
