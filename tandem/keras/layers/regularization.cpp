#include "tandem/keras/layers/regularization.h"

#include <cmath>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/images.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/nn_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"

namespace tandem::keras {
namespace {

ConfigValue seed_value(const std::optional<std::int64_t>& seed) {
  return seed ? ConfigValue(*seed) : ConfigValue();
}

void require_rate(const std::string& layer, double rate) {
  if (rate >= 0 && rate < 1) return;
  throw InvalidArgumentError(
      cat(layer, ": Invalid value received for argument `rate`. Expected a value from 0 up to and ",
          "without 1. Received: rate=", rate, "."));
}

// A noise shape with the input's sizes where it says -1.
Tensor filled_noise_shape(const LayerImpl& layer, const std::vector<std::int64_t>& wanted,
                          const Tensor& x) {
  if (static_cast<int>(wanted.size()) != x.rank()) {
    throw InvalidArgumentError(cat("Layer '", layer.name(), "' (", layer.class_name(),
                                   "): noise_shape has ", wanted.size(),
                                   " sizes, but the input has shape ", x.partial_shape(), "."));
  }
  std::vector<Tensor> sizes;
  const std::vector<Tensor> given = unstack(shape(x), x.rank());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    sizes.push_back(wanted[i] < 0 ? given[i] : Tensor(static_cast<int>(wanted[i])));
  }
  return stack(sizes);
}

class DropoutImpl final : public LayerImpl {
 public:
  DropoutImpl(double rate, const DropoutOptions& o, const std::string& class_name = "Dropout")
      : LayerImpl(class_name, {.name = o.name, .dtype = o.dtype}), rate_(rate), options_(o) {
    require_rate(class_name, rate);
    if (rate > 0) seeds_ = add_seed_generator(o.seed);
    without_weights();
    pass_masks();
  }

  Tensor call(const Tensor& x, bool training) override {
    if (!training || rate_ == 0) return x;
    const Tensor noise_shape = options_.noise_shape.empty()
                                   ? Tensor()
                                   : filled_noise_shape(*this, options_.noise_shape, x);
    return nn::experimental::stateless_dropout(x, rate_, seeds_->next(), noise_shape);
  }
  void describe(Config& config) const override {
    config.set("rate", rate_)
        .set("seed", seed_value(options_.seed))
        .set("noise_shape", options_.noise_shape);
  }

 private:
  double rate_;
  DropoutOptions options_;
  std::optional<random::SeedGenerator> seeds_;  // none where nothing is dropped
};

// The rate of a dropout of whole channels, as a noise shape.
std::shared_ptr<LayerImpl> spatial_dropout(const std::string& class_name, int dims, double rate,
                                           const SpatialDropoutOptions& o) {
  const bool last = internal::ops_data_format(class_name, o.data_format) == "NHWC";
  std::vector<std::int64_t> noise(static_cast<std::size_t>(dims) + 2, 1);
  noise[0] = -1;
  noise[last ? noise.size() - 1 : 1] = -1;
  return std::make_shared<DropoutImpl>(
      rate, DropoutOptions{.noise_shape = noise, .seed = o.seed, .name = o.name, .dtype = o.dtype},
      class_name);
}

class AlphaDropoutImpl final : public LayerImpl {
 public:
  AlphaDropoutImpl(double rate, const DropoutOptions& o)
      : LayerImpl("AlphaDropout", {.name = o.name, .dtype = o.dtype}), rate_(rate), options_(o) {
    require_rate("AlphaDropout", rate);
    if (rate > 0) seeds_ = add_seed_generator(o.seed);
    without_weights();
    pass_masks();
  }

  Tensor call(const Tensor& x, bool training) override {
    if (!training || rate_ == 0) return x;
    constexpr double kFloor =
        -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946;
    const double a = 1 / std::sqrt((1 - rate_) * (1 + rate_ * kFloor * kFloor));
    const double b = -a * kFloor * rate_;
    const Tensor sizes = options_.noise_shape.empty()
                             ? shape(x)
                             : filled_noise_shape(*this, options_.noise_shape, x);
    const Tensor keep =
        tandem::random::stateless_uniform(IntList(sizes), IntList(seeds_->next())) >= rate_;
    const Tensor kept = cast(keep, x.dtype());
    return (x * kept + kFloor * (1 - kept)) * a + b;
  }
  void describe(Config& config) const override {
    config.set("rate", rate_)
        .set("seed", seed_value(options_.seed))
        .set("noise_shape", options_.noise_shape);
  }

 private:
  double rate_;
  DropoutOptions options_;
  std::optional<random::SeedGenerator> seeds_;  // none where nothing is dropped
};

class GaussianNoiseImpl final : public LayerImpl {
 public:
  GaussianNoiseImpl(double stddev, const GaussianNoiseOptions& o)
      : LayerImpl("GaussianNoise", {.name = o.name, .dtype = o.dtype}),
        stddev_(stddev),
        seed_(o.seed) {
    internal::require_range("GaussianNoise", "stddev", stddev, 0, 1e30);
    if (stddev > 0) seeds_ = add_seed_generator(o.seed);
    without_weights();
    pass_masks();
  }

  Tensor call(const Tensor& x, bool training) override {
    if (!training || stddev_ == 0) return x;
    return x + tandem::random::stateless_normal(IntList(shape(x)), IntList(seeds_->next()),
                                                {.stddev = stddev_, .dtype = x.dtype()});
  }
  void describe(Config& config) const override {
    config.set("stddev", stddev_).set("seed", seed_value(seed_));
  }

 private:
  double stddev_;
  std::optional<std::int64_t> seed_;
  std::optional<random::SeedGenerator> seeds_;
};

class GaussianDropoutImpl final : public LayerImpl {
 public:
  GaussianDropoutImpl(double rate, const GaussianNoiseOptions& o)
      : LayerImpl("GaussianDropout", {.name = o.name, .dtype = o.dtype}),
        rate_(rate),
        seed_(o.seed) {
    require_rate("GaussianDropout", rate);
    if (rate > 0) seeds_ = add_seed_generator(o.seed);
    without_weights();
    pass_masks();
  }

  Tensor call(const Tensor& x, bool training) override {
    if (!training || rate_ == 0) return x;
    return x * tandem::random::stateless_normal(
                   IntList(shape(x)), IntList(seeds_->next()),
                   {.mean = 1, .stddev = std::sqrt(rate_ / (1 - rate_)), .dtype = x.dtype()});
  }
  void describe(Config& config) const override {
    config.set("rate", rate_).set("seed", seed_value(seed_));
  }

 private:
  double rate_;
  std::optional<std::int64_t> seed_;
  std::optional<random::SeedGenerator> seeds_;
};

class ActivityRegularizationImpl final : public LayerImpl {
 public:
  explicit ActivityRegularizationImpl(const ActivityRegularizationOptions& o)
      : LayerImpl("ActivityRegularization", {.name = o.name, .dtype = o.dtype}),
        options_(o),
        penalty_(regularizers::L1L2(o.l1, o.l2)) {
    without_weights();
    pass_masks();
  }

  Tensor call(const Tensor& x, bool) override {
    add_loss(internal::activity_penalty(penalty_, x));
    return x;
  }
  void describe(Config& config) const override {
    config.set("l1", options_.l1).set("l2", options_.l2);
  }

 private:
  ActivityRegularizationOptions options_;
  Regularizer penalty_;
};

}  // namespace

Dropout::Dropout(double rate, const DropoutOptions& options)
    : Layer(std::make_shared<DropoutImpl>(rate, options)) {}
GaussianNoise::GaussianNoise(double stddev, const GaussianNoiseOptions& options)
    : Layer(std::make_shared<GaussianNoiseImpl>(stddev, options)) {}
SpatialDropout1D::SpatialDropout1D(double rate, const SpatialDropoutOptions& options)
    : Layer(spatial_dropout("SpatialDropout1D", 1, rate, options)) {}
SpatialDropout2D::SpatialDropout2D(double rate, const SpatialDropoutOptions& options)
    : Layer(spatial_dropout("SpatialDropout2D", 2, rate, options)) {}
SpatialDropout3D::SpatialDropout3D(double rate, const SpatialDropoutOptions& options)
    : Layer(spatial_dropout("SpatialDropout3D", 3, rate, options)) {}
AlphaDropout::AlphaDropout(double rate, const DropoutOptions& options)
    : Layer(std::make_shared<AlphaDropoutImpl>(rate, options)) {}
GaussianDropout::GaussianDropout(double rate, const GaussianNoiseOptions& options)
    : Layer(std::make_shared<GaussianDropoutImpl>(rate, options)) {}
ActivityRegularization::ActivityRegularization(const ActivityRegularizationOptions& options)
    : Layer(std::make_shared<ActivityRegularizationImpl>(options)) {}

}  // namespace tandem::keras
