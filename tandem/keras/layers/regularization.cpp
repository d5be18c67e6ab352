#include "tandem/keras/layers/regularization.h"

#include <cmath>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
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

 private:
  ActivityRegularizationOptions options_;
  Regularizer penalty_;
};

constexpr auto kDropout = [](auto& a, auto& o, auto& rate) {
  a("rate", rate);
  a.sizes("noise_shape", o.noise_shape);
  a("seed", o.seed);
};
constexpr auto kSpatial1D = [](auto& a, auto& o, auto& rate) {
  a("rate", rate);
  a("seed", o.seed);
  a.ignore("noise_shape");
};
constexpr auto kSpatial = [](auto& a, auto& o, auto& rate) {
  a("rate", rate);
  a("data_format", o.data_format);
  a("seed", o.seed);
  a.ignore("noise_shape");
};
constexpr auto kNoise = [](auto& a, auto& o, auto& stddev) {
  a("stddev", stddev);
  a("seed", o.seed);
};
constexpr auto kGaussianDropout = [](auto& a, auto& o, auto& rate) {
  a("rate", rate);
  a("seed", o.seed);
};
constexpr auto kActivity = [](auto& a, auto& o) {
  a("l1", o.l1);
  a("l2", o.l2);
  a.ignore("activity_regularizer");
};

}  // namespace

Dropout::Dropout(double rate, const DropoutOptions& options)
    : Layer(internal::with_arguments(std::make_shared<DropoutImpl>(rate, options), kDropout,
                                     options, rate)) {}
GaussianNoise::GaussianNoise(double stddev, const GaussianNoiseOptions& options)
    : Layer(internal::with_arguments(std::make_shared<GaussianNoiseImpl>(stddev, options), kNoise,
                                     options, stddev)) {}
SpatialDropout1D::SpatialDropout1D(double rate, const SpatialDropoutOptions& options)
    : Layer(internal::with_arguments(spatial_dropout("SpatialDropout1D", 1, rate, options),
                                     kSpatial1D, options, rate)) {}
SpatialDropout2D::SpatialDropout2D(double rate, const SpatialDropoutOptions& options)
    : Layer(internal::with_arguments(spatial_dropout("SpatialDropout2D", 2, rate, options),
                                     kSpatial, options, rate)) {}
SpatialDropout3D::SpatialDropout3D(double rate, const SpatialDropoutOptions& options)
    : Layer(internal::with_arguments(spatial_dropout("SpatialDropout3D", 3, rate, options),
                                     kSpatial, options, rate)) {}
AlphaDropout::AlphaDropout(double rate, const DropoutOptions& options)
    : Layer(internal::with_arguments(std::make_shared<AlphaDropoutImpl>(rate, options), kDropout,
                                     options, rate)) {}
GaussianDropout::GaussianDropout(double rate, const GaussianNoiseOptions& options)
    : Layer(internal::with_arguments(std::make_shared<GaussianDropoutImpl>(rate, options),
                                     kGaussianDropout, options, rate)) {}
ActivityRegularization::ActivityRegularization(const ActivityRegularizationOptions& options)
    : Layer(internal::with_arguments(std::make_shared<ActivityRegularizationImpl>(options),
                                     kActivity, options)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<Dropout, DropoutOptions, double>("Dropout", kDropout),
    internal::register_layer_class<AlphaDropout, DropoutOptions, double>("AlphaDropout", kDropout),
    internal::register_layer_class<GaussianNoise, GaussianNoiseOptions, double>("GaussianNoise",
                                                                                kNoise),
    internal::register_layer_class<GaussianDropout, GaussianNoiseOptions, double>("GaussianDropout",
                                                                                  kGaussianDropout),
    internal::register_layer_class<ActivityRegularization, ActivityRegularizationOptions>(
        "ActivityRegularization", kActivity),
    internal::register_layer_class<SpatialDropout1D, SpatialDropoutOptions, double>(
        "SpatialDropout1D", kSpatial1D),
    internal::register_layer_class<SpatialDropout2D, SpatialDropoutOptions, double>(
        "SpatialDropout2D", kSpatial),
    internal::register_layer_class<SpatialDropout3D, SpatialDropoutOptions, double>(
        "SpatialDropout3D", kSpatial)};
}  // namespace

}  // namespace tandem::keras
