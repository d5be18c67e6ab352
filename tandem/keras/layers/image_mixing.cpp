#include "tandem/keras/layers/image_mixing.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/image_augmentation.h"
#include "tandem/keras/random.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::keras {
namespace {

using internal::ImageAugmentation;

void require_share(const char* who, const char* what, ShareRange range) {
  internal::require_range(who, what, range.lower, 0, 1);
  internal::require_range(who, what, range.upper, 0, 1);
}

// Where something is done: 0 to 1 for each image, below a number that is drawn too.
struct Boxes {
  Tensor x0, x1, y0, y1;  // [count, 1, 1, 1]
};

Tensor of_images(const Tensor& numbers) { return reshape(numbers, {-1, 1, 1, 1}); }

// True within the boxes: [count, height, width, 1].
Tensor mask_of(const Tensor& images, const Boxes& box) {
  const Tensor sizes = shape(images);
  const Tensor rows = reshape(cast(range(sizes[1]), float32), {1, -1, 1, 1});
  const Tensor columns = reshape(cast(range(sizes[2]), float32), {1, 1, -1, 1});
  return logical_and(logical_and(columns >= box.x0, columns < box.x1),
                     logical_and(rows >= box.y0, rows < box.y1));
}

class ErasingImpl final : public ImageAugmentation {
 public:
  explicit ErasingImpl(const ErasingOptions& o)
      : ImageAugmentation("RandomErasing", o.name, o.seed), options_(o) {
    require_share("RandomErasing", "factor", o.factor);
    require_share("RandomErasing", "scale", o.scale);
  }

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const Tensor sizes = cast(shape(images), float32);
    const auto side = [&](const Tensor& length) {
      const Tensor share = sqrt(draw(count, options_.scale.lower, options_.scale.upper));
      const Tensor size = share * length;
      const Tensor begin = draw(count, 0, 1) * (length - size);
      return std::pair(of_images(begin), of_images(begin + size));
    };
    const auto [x0, x1] = side(sizes[2]);
    const auto [y0, y1] = side(sizes[1]);
    const Tensor inside = mask_of(images, {x0, x1, y0, y1});
    const Tensor chosen = draw_for(images, count, 0, 1) <
                          draw_for(images, count, options_.factor.lower, options_.factor.upper);
    const Tensor filling =
        options_.fill_value
            ? fill(IntList(shape(images)), constant(Tensor(*options_.fill_value), images.dtype()))
            : cast(
                  tandem::random::stateless_normal(IntList(shape(images)), IntList(seeds_.next())) *
                      options_.max_value,
                  images.dtype());
    const Tensor erased =
        where(logical_and(inside, chosen),
              clip_by_value(filling, options_.min_value, options_.max_value), images);
    return erased;
  }

 private:
  ErasingOptions options_;
};

// Images, alone or with labels, mixed with others of the batch.
class MixingImpl : public LayerImpl {
 public:
  MixingImpl(const char* class_name, const std::string& name, std::optional<std::int64_t> seed)
      : LayerImpl(class_name, {.name = name}), seeds_(add_seed_generator(seed)) {
    without_weights();
  }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions& how) override {
    if (inputs.empty() || inputs.size() > 2 || inputs[0].rank() != 4) {
      throw InvalidArgumentError(
          cat(prefix(), "takes a batch of images [batch, height, width, channels], or images and ",
              "labels [batch, classes]."));
    }
    const Tensor images = cast(inputs[0], compute_dtype());
    if (!how.is_training()) {
      std::vector<Tensor> same{images};
      if (inputs.size() == 2) same.push_back(inputs[1]);
      return same;
    }
    const Tensor count = shape(images)[0];
    const Tensor order = random::shuffle(range(count), 0, seeds_);
    const auto [mixed, weight] = mix(images, gather(images, order), count);
    std::vector<Tensor> results{mixed};
    if (inputs.size() == 2) {
      const Tensor labels = cast(inputs[1], compute_dtype());
      const Tensor w = cast(reshape(weight, {-1, 1}), labels.dtype());
      results.push_back(w * labels + (1.0 - w) * gather(labels, order));
    }
    return results;
  }

 protected:
  // The result, and the weight of the first image in it, one number for each.
  virtual std::pair<Tensor, Tensor> mix(const Tensor& images, const Tensor& others,
                                        const Tensor& count) = 0;
  random::SeedGenerator seeds_;
};

class MixUpImpl final : public MixingImpl {
 public:
  explicit MixUpImpl(const MixUpOptions& o) : MixingImpl("MixUp", o.name, o.seed), alpha_(o.alpha) {
    if (!(o.alpha > 0))
      throw InvalidArgumentError(cat("MixUp: alpha must be positive, got ", o.alpha, "."));
  }
  void describe(Config& config) const override { config.set("alpha", alpha_); }

 protected:
  std::pair<Tensor, Tensor> mix(const Tensor& images, const Tensor& others,
                                const Tensor& count) override {
    const Tensor weight =
        random::beta(IntList(reshape(count, {1})), Tensor(alpha_), Tensor(alpha_), float32, seeds_);
    const Tensor w = cast(of_images(weight), images.dtype());
    return {w * images + (1.0 - w) * others, weight};
  }

 private:
  double alpha_;
};

class CutMixImpl final : public MixingImpl {
 public:
  explicit CutMixImpl(const CutMixOptions& o)
      : MixingImpl("CutMix", o.name, o.seed), factor_(o.factor) {
    require_share("CutMix", "factor", o.factor);
  }
  void describe(Config& config) const override {
    config.set("factor", config_value(std::vector<ConfigValue>{factor_.lower, factor_.upper}));
  }

 protected:
  std::pair<Tensor, Tensor> mix(const Tensor& images, const Tensor& others,
                                const Tensor& count) override {
    const IntList each(reshape(count, {1}));
    const auto uniform = [&](const IntList& size, double from, double to) {
      return random::uniform(size, {.minval = from, .maxval = to, .seed = seeds_});
    };
    const Tensor alpha = uniform(IntList(), factor_.lower, factor_.upper) + 1e-6;
    const Tensor ratio = sqrt(1.0 - random::beta(each, alpha, alpha, float32, seeds_));
    const Tensor sizes = cast(shape(images), float32);
    const auto side = [&](const Tensor& length) {
      const Tensor size = ratio * length;
      const Tensor begin = uniform(each, 0, 1) * (length - size);
      return std::pair(begin, begin + size);
    };
    const auto [x0, x1] = side(sizes[2]);
    const auto [y0, y1] = side(sizes[1]);
    const Tensor inside =
        mask_of(images, {of_images(x0), of_images(x1), of_images(y0), of_images(y1)});
    const Tensor weight = 1.0 - (x1 - x0) * (y1 - y0) / (sizes[1] * sizes[2]);
    return {where(inside, others, images), weight};
  }

 private:
  ShareRange factor_;
};

class BlurImpl final : public ImageAugmentation {
 public:
  explicit BlurImpl(const GaussianBlurOptions& o)
      : ImageAugmentation("RandomGaussianBlur", o.name, o.seed), options_(o) {
    require_share("RandomGaussianBlur", "factor", o.factor);
    require_share("RandomGaussianBlur", "sigma", o.sigma);
    if (o.kernel_size < 1 || o.kernel_size % 2 == 0) {
      throw InvalidArgumentError(
          cat("RandomGaussianBlur: kernel_size must be an odd number, got ", o.kernel_size, "."));
    }
  }

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const Tensor chance = draw_for(images, count, options_.factor.lower, options_.factor.upper);
    const Tensor chosen = draw_for(images, count, 0, 1) < chance;
    const Tensor sigma = draw(Tensor(2), options_.sigma.lower, options_.sigma.upper) + 1e-6;
    const auto kernel = [&](const Tensor& deviation) {
      const double middle = static_cast<double>(options_.kernel_size - 1) / 2;
      const Tensor x =
          cast(range(Tensor(static_cast<int>(options_.kernel_size))), float32) - middle;
      const Tensor weights = exp(square(x / deviation) * -0.5);
      return weights / reduce_sum(weights);
    };
    const std::int64_t n = options_.kernel_size;
    const Tensor both = reshape(kernel(sigma[1]), {n, 1}) * reshape(kernel(sigma[0]), {1, n});
    const Tensor filters =
        tile(reshape(cast(both, images.dtype()), {n, n, 1, 1}), {1, 1, images.dim(-1), 1});
    const Tensor blurred = nn::depthwise_conv2d(images, filters, 1, "SAME");
    return clip_by_value(where(chosen, blurred, images), options_.min_value, options_.max_value);
  }

 private:
  GaussianBlurOptions options_;
};

Tensor transformed(const Tensor& images, const Tensor& matrices, const TransformOptions& o) {
  const auto upper = [](std::string word) {
    for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return word;
  };
  const Tensor sizes = shape(images);
  return raw_op("ImageProjectiveTransformV3",
                {images, matrices, sizes[Slice(1, 3)], Tensor(o.fill_value)},
                {{"interpolation", upper(o.interpolation)}, {"fill_mode", upper(o.fill_mode)}})[0];
}

class ShearImpl final : public ImageAugmentation {
 public:
  ShearImpl(FactorRange x, FactorRange y, const TransformOptions& o)
      : ImageAugmentation("RandomShear", o.name, o.seed), x_(x), y_(y), options_(o) {}

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const Tensor flip = draw(count, 0, 1);
    const Tensor side = where(flip > 0.5, -ones_like(flip), ones_like(flip));
    const Tensor y = draw(count, y_.lower, y_.upper) * side;
    const Tensor x = draw(count, x_.lower, x_.upper) * side;
    const Tensor one = ones_like(x), zero = zeros_like(x);
    return transformed(images, stack({one, x, zero, y, one, zero, zero, zero}, 1), options_);
  }

 private:
  FactorRange x_, y_;
  TransformOptions options_;
};

class PerspectiveImpl final : public ImageAugmentation {
 public:
  explicit PerspectiveImpl(const PerspectiveOptions& o)
      : ImageAugmentation("RandomPerspective", o.name, o.seed), options_(o) {
    require_share("RandomPerspective", "factor", o.factor);
    internal::require_range("RandomPerspective", "scale", o.scale, 0, 1);
  }

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const Tensor chance = draw_for(images, count, options_.factor.lower, options_.factor.upper);
    const Tensor chosen = draw_for(images, count, 0, 1) < chance;
    const Tensor sizes = cast(shape(images), float32);
    const Tensor right = sizes[2] - 1.0, bottom = sizes[1] - 1.0, zero = zeros_like(right);
    const double most = 0.5 * options_.scale;
    const Tensor moves =
        options_.scale == 0 ? zeros({1, 4, 2}) : reshape(draw(count * 8, -most, most), {-1, 4, 2});
    const Tensor corners =
        reshape(stack({zero, zero, right, zero, zero, bottom, right, bottom}), {1, 4, 2}) +
        zeros_like(moves);
    const Tensor moved = corners + corners * moves;
    const Tensor matrices = homography(corners, moved);
    const Tensor bent = transformed(images, matrices,
                                    {.fill_mode = "constant",
                                     .interpolation = options_.interpolation,
                                     .fill_value = options_.fill_value});
    return where(chosen, bent, images);
  }

 private:
  // The eight numbers that take the moved corners to the corners: two equations for each.
  static Tensor homography(const Tensor& start, const Tensor& end) {
    const auto x = [](const Tensor& points) { return points[{Slice(), Slice(), 0}]; };
    const auto y = [](const Tensor& points) { return points[{Slice(), Slice(), 1}]; };
    const Tensor sx = x(start), sy = y(start), ex = x(end), ey = y(end);
    const Tensor one = ones_like(ex), zero = zeros_like(ex);
    const Tensor first = stack({ex, ey, one, zero, zero, zero, -sx * ex, -sx * ey}, 2);
    const Tensor second = stack({zero, zero, zero, ex, ey, one, -sy * ex, -sy * ey}, 2);
    const Tensor equations = concat({first, second}, 1);
    const Tensor values = expand_dims(concat({sx, sy}, 1), -1);
    return reshape(linalg::solve(equations, values), {-1, 8});
  }

  PerspectiveOptions options_;
};

// The changes that RandAugment and AugMix draw from.
std::vector<Layer> changes(double factor, double min_value, double max_value, bool all,
                           const std::string& interpolation, std::optional<std::int64_t> seed) {
  const TransformOptions moves{.interpolation = interpolation, .seed = seed};
  const ColourOptions colors{.min_value = min_value, .max_value = max_value, .seed = seed};
  const FactorRange range(0, factor);
  const ShareRange share(factor);
  std::vector<Layer> layers{RandomShear(range, range, moves),
                            RandomTranslation(range, range, moves), RandomRotation(range, moves)};
  if (all) {
    layers.push_back(RandomBrightness(range, colors));
    layers.push_back(RandomColorDegeneration(share, colors));
    layers.push_back(RandomContrast(factor, colors));
    layers.push_back(RandomSharpness(share, colors));
  }
  layers.push_back(RandomPosterization(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(8 * factor)), colors));
  layers.push_back(Solarization({.addition_factor = share,
                                 .threshold_factor = share,
                                 .min_value = min_value,
                                 .max_value = max_value,
                                 .seed = seed}));
  layers.push_back(AutoContrast(colors));
  layers.push_back(Equalization({.min_value = min_value, .max_value = max_value}));
  return layers;
}

// Draws which of its changes come next; all images of a batch get the same ones.
class PolicyImpl : public ImageAugmentation {
 public:
  PolicyImpl(const char* class_name, const std::string& name, std::optional<std::int64_t> seed,
             const std::vector<Layer>& layers)
      : ImageAugmentation(class_name, name, seed), layers_(layers) {
    for (const Layer& layer : layers_) add_layer(layer);
  }

 protected:
  // One change, or none with probability 1 / (n + 1) if `may_skip`.
  Tensor change_once(const Tensor& x, bool may_skip) {
    const auto kinds = static_cast<std::int64_t>(layers_.size());
    const Tensor choice = random::randint({}, 0, kinds + (may_skip ? 1 : 0), int32, seeds_);
    Tensor result = x;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      result = cond(
          equal(choice, Tensor(static_cast<int>(i))),
          [&] { return cast(layer(x, {.training = true}), x.dtype()); }, [&] { return result; });
    }
    return result;
  }

 private:
  std::vector<Layer> layers_;
};

class RandAugmentImpl final : public PolicyImpl {
 public:
  explicit RandAugmentImpl(const RandAugmentOptions& o)
      : PolicyImpl("RandAugment", o.name, o.seed,
                   changes(o.factor, o.min_value, o.max_value, true, o.interpolation, o.seed)),
        options_(o) {
    internal::require_range("RandAugment", "factor", o.factor, 0, 1);
    internal::require_positive("RandAugment", "num_ops", o.num_ops);
  }

 protected:
  Tensor change(const Tensor& images, const Tensor&) override {
    Tensor x = images;
    for (std::int64_t i = 0; i < options_.num_ops; ++i) x = change_once(x, false);
    return x;
  }

 private:
  RandAugmentOptions options_;
};

class AugMixImpl final : public PolicyImpl {
 public:
  explicit AugMixImpl(const AugMixOptions& o)
      : PolicyImpl("AugMix", o.name, o.seed,
                   changes(o.factor, o.min_value, o.max_value, o.all_ops, o.interpolation, o.seed)),
        options_(o) {
    internal::require_range("AugMix", "factor", o.factor, 0, 1);
    internal::require_positive("AugMix", "num_chains", o.num_chains);
    internal::require_positive("AugMix", "chain_depth", o.chain_depth);
  }

 protected:
  Tensor change(const Tensor& images, const Tensor&) override {
    const Tensor alpha(options_.alpha);
    const Tensor parts = random::gamma({options_.num_chains}, alpha, float32, seeds_);
    const Tensor weights = cast(parts / reduce_sum(parts), images.dtype());
    const Tensor kept = cast(random::beta({}, alpha, alpha, float32, seeds_), images.dtype());
    Tensor mixed = zeros_like(images);
    for (std::int64_t i = 0; i < options_.num_chains; ++i) {
      Tensor x = images;
      for (std::int64_t j = 0; j < options_.chain_depth; ++j) x = change_once(x, true);
      mixed = mixed + x * weights[i];
    }
    return clip_by_value(kept * images + (1.0 - kept) * mixed, options_.min_value,
                         options_.max_value);
  }

 private:
  AugMixOptions options_;
};

}  // namespace

RandomErasing::RandomErasing(const ErasingOptions& o) : Layer(make_layer<ErasingImpl>(o)) {}
MixUp::MixUp(const MixUpOptions& o) : Layer(make_layer<MixUpImpl>(o)) {}
CutMix::CutMix(const CutMixOptions& o) : Layer(make_layer<CutMixImpl>(o)) {}
RandomGaussianBlur::RandomGaussianBlur(const GaussianBlurOptions& o)
    : Layer(make_layer<BlurImpl>(o)) {}
RandomShear::RandomShear(FactorRange x, FactorRange y, const TransformOptions& o)
    : Layer(make_layer<ShearImpl>(x, y, o)) {}
RandomPerspective::RandomPerspective(const PerspectiveOptions& o)
    : Layer(make_layer<PerspectiveImpl>(o)) {}
RandAugment::RandAugment(const RandAugmentOptions& o) : Layer(make_layer<RandAugmentImpl>(o)) {}
AugMix::AugMix(const AugMixOptions& o) : Layer(make_layer<AugMixImpl>(o)) {}

}  // namespace tandem::keras
