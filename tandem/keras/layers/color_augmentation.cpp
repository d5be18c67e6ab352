#include "tandem/keras/layers/color_augmentation.h"

#include <memory>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/image_augmentation.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras {
namespace {

using internal::ImageAugmentation;

struct Range {
  double min, max;
};

Tensor rescale(const Tensor& x, Range from, Range to) {
  if (from.min == to.min && from.max == to.max) return x;
  return (x - from.min) / (from.max - from.min) * (to.max - to.min) + to.min;
}

constexpr Range kBytes{0, 255};

// What layers of a factor and a range of values have in common.
class ColorChange : public ImageAugmentation {
 public:
  ColorChange(const char* class_name, ShareRange factor, const ColourOptions& o)
      : ImageAugmentation(class_name, o.name, o.seed),
        factor_(factor),
        range_{o.min_value, o.max_value} {
    internal::require_range(class_name, "factor", factor.lower, 0, 1);
    internal::require_range(class_name, "factor", factor.upper, 0, 1);
  }
  void describe(Config& config) const override {
    config.set("factor", config_value(std::vector<ConfigValue>{factor_.lower, factor_.upper}));
    config.set("value_range", config_value(std::vector<ConfigValue>{range_.min, range_.max}));
  }

 protected:
  Tensor factors(const Tensor& images, const Tensor& count) {
    return draw_for(images, count, factor_.lower, factor_.upper);
  }
  Tensor cut(const Tensor& x) const { return clip_by_value(x, range_.min, range_.max); }

  ShareRange factor_;
  Range range_;
};

Tensor channel(const Tensor& x, int number) { return slice(x, {0, 0, 0, number}, {-1, -1, -1, 1}); }

class HueImpl final : public ColorChange {
 public:
  HueImpl(ShareRange factor, const ColourOptions& o) : ColorChange("RandomHue", factor, o) {}

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const Tensor side = where(draw_for(images, count, 0, 1) > 0.5, Tensor(-1.0), Tensor(1.0));
    const Tensor turn = cast(side, images.dtype()) * factors(images, count) * 0.5;
    const Tensor hsv = image::rgb_to_hsv(rescale(images, range_, {0, 1}));
    Tensor hue = channel(hsv, 0) + turn;
    hue = where(hue > 1.0, hue - 1.0, hue);
    hue = where(hue < 0.0, hue + 1.0, hue);
    const Tensor rgb = image::hsv_to_rgb(concat({hue, channel(hsv, 1), channel(hsv, 2)}, -1));
    return rescale(clip_by_value(rgb, 0.0, 1.0), {0, 1}, range_);
  }
};

class SaturationImpl final : public ColorChange {
 public:
  SaturationImpl(ShareRange factor, const ColourOptions& o)
      : ColorChange("RandomSaturation", factor, o) {}

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const Tensor share = factors(images, count);
    const Tensor factor = share / (1.0 - share + 1e-7);
    const Tensor hsv = image::rgb_to_hsv(images);
    const Tensor saturation = cut(channel(hsv, 1) * factor);
    return image::hsv_to_rgb(concat({channel(hsv, 0), saturation, channel(hsv, 2)}, -1));
  }
};

class DegenerationImpl final : public ColorChange {
 public:
  DegenerationImpl(ShareRange factor, const ColourOptions& o)
      : ColorChange("RandomColorDegeneration", factor, o) {}

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const Tensor grey = image::rgb_to_grayscale(images);
    return cut(images + factors(images, count) * (grey - images));
  }
};

class SharpnessImpl final : public ColorChange {
 public:
  SharpnessImpl(ShareRange factor, const ColourOptions& o)
      : ColorChange("RandomSharpness", factor, o) {}

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const std::int64_t channels = images.dim(-1);
    const double a = 1.0 / 13, b = 5.0 / 13;
    const Tensor kernel = cast(Tensor{a, a, a, a, b, a, a, a, a}, images.dtype());
    const Tensor filters = tile(reshape(kernel, {3, 3, 1, 1}), {1, 1, channels, 1});
    const Tensor smooth = nn::depthwise_conv2d(images, filters, 1, "SAME");
    return cut(images + (1.0 - factors(images, count) * 2.0) * (smooth - images));
  }
};

class PosterizationImpl final : public ImageAugmentation {
 public:
  PosterizationImpl(std::int64_t from, std::int64_t to, const ColourOptions& o)
      : ImageAugmentation("RandomPosterization", o.name, o.seed),
        from_(from),
        to_(to),
        range_{o.min_value, o.max_value} {
    internal::require_range("RandomPosterization", "factor", static_cast<double>(from), 1, 8);
    internal::require_range("RandomPosterization", "factor", static_cast<double>(to), 1, 8);
  }
  void describe(Config& config) const override {
    config.set("factor", std::vector<std::int64_t>{from_, to_});
    config.set("value_range", config_value(std::vector<ConfigValue>{range_.min, range_.max}));
  }

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    Tensor bits = draw_for(images, count, static_cast<double>(from_), static_cast<double>(to_));
    bits = floor(bits);
    // The low bits of whole numbers, cut off by a division: 2 to the power of their number.
    const Tensor step = pow(cast(Tensor(2.0), images.dtype()), 8.0 - bits);
    const Tensor whole = cast(cast(rescale(images, range_, kBytes), uint8), images.dtype());
    return rescale(floor(whole / step) * step, kBytes, range_);
  }

 private:
  std::int64_t from_, to_;
  Range range_;
};

class SolarizationImpl final : public ImageAugmentation {
 public:
  explicit SolarizationImpl(const SolarizationOptions& o)
      : ImageAugmentation("Solarization", o.name, o.seed), options_(o) {
    for (const ShareRange& factor : {o.addition_factor, o.threshold_factor}) {
      internal::require_range("Solarization", "factor", factor.lower, 0, 1);
      internal::require_range("Solarization", "factor", factor.upper, 0, 1);
    }
  }

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    const Range range{options_.min_value, options_.max_value};
    // Keras scales the upper limits alone to 255.
    const ShareRange &add = options_.addition_factor, &limit = options_.threshold_factor;
    const Tensor additions = draw_for(images, count, add.lower, add.upper * 255);
    const Tensor thresholds = draw_for(images, count, limit.lower, limit.upper * 255);
    Tensor x = clip_by_value(rescale(images, range, kBytes) + additions, 0.0, 255.0);
    x = where(x < thresholds, x, 255.0 - x);
    return rescale(x, kBytes, range);
  }

 private:
  SolarizationOptions options_;
};

class AutoContrastImpl final : public ImageAugmentation {
 public:
  explicit AutoContrastImpl(const ColourOptions& o)
      : ImageAugmentation("AutoContrast", o.name, o.seed), range_{o.min_value, o.max_value} {}

 protected:
  Tensor change(const Tensor& images, const Tensor&) override {
    const Tensor x = rescale(images, range_, kBytes);
    const Tensor low = reduce_min(x, {1, 2}, true), high = reduce_max(x, {1, 2}, true);
    const Tensor scale = 255.0 / (high - low);
    const Tensor stretched =
        rescale(clip_by_value(x * scale - low * scale, 0.0, 255.0), kBytes, range_);
    return where(math::is_nan(stretched), images, stretched);
  }
  // Nothing is drawn, so it is done without training too.
  Tensor otherwise(const Tensor& images) override {
    if (images.rank() == 4) return change(images, Tensor(1));
    return squeeze(change(expand_dims(images, 0), Tensor(1)), {0});
  }

 private:
  Range range_;
};

class EqualizationImpl final : public ImageAugmentation {
 public:
  explicit EqualizationImpl(const EqualizationOptions& o)
      : ImageAugmentation("Equalization", o.name, std::nullopt), options_(o) {
    internal::require_positive("Equalization", "bins", o.bins);
  }
  void describe(Config& config) const override { config.set("bins", options_.bins); }

 protected:
  // Keras counts a channel over the whole batch.
  Tensor change(const Tensor& images, const Tensor&) override {
    const Range range{options_.min_value, options_.max_value};
    const double last = static_cast<double>(options_.bins) - 1;
    std::vector<Tensor> channels;
    for (std::int64_t c = 0; c < images.dim(-1); ++c) {
      const Tensor x = rescale(channel(images, static_cast<int>(c)), range, kBytes);
      const Tensor bins = cast(clip_by_value(x * last / 255.0, 0.0, last), int32);
      const Tensor hist =
          reduce_sum(one_hot(reshape(bins, {-1}), options_.bins, {.dtype = float32}), {0});
      const Tensor sums = cumsum(hist, 0);
      const Tensor none = fill(IntList{options_.bins}, Tensor(3e38F));
      const Tensor first = reduce_min(where(sums > 0.0, sums, none));
      const Tensor total = reduce_max(sums);
      const Tensor rest = total - first;
      const Tensor divisor = where(equal(rest, Tensor(0.0F)), Tensor(1.0F), rest);
      const Tensor table = clip_by_value(round((sums - first) * 255.0 / divisor), 0.0, 255.0);
      const Tensor equalized = cast(gather(table, bins), x.dtype());
      const Tensor filled = reduce_sum(cast(hist > 0.0, int32));
      channels.push_back(rescale(where(filled <= 1, x, equalized), kBytes, range));
    }
    return concat(channels, -1);
  }

 private:
  EqualizationOptions options_;
};

// Layers one after the other, as far as they are there.
class JitterImpl final : public LayerImpl {
 public:
  explicit JitterImpl(const ColorJitterOptions& o)
      : LayerImpl("RandomColorJitter", {.name = o.name}) {
    const ColourOptions shared{.min_value = o.min_value, .max_value = o.max_value, .seed = o.seed};
    if (o.brightness_factor)
      add_layer(RandomBrightness(*o.brightness_factor, shared), "random_brightness");
    if (o.contrast_factor) add_layer(RandomContrast(*o.contrast_factor, shared), "random_contrast");
    if (o.saturation_factor)
      add_layer(RandomSaturation(*o.saturation_factor, shared), "random_saturation");
    if (o.hue_factor) add_layer(RandomHue(*o.hue_factor, shared), "random_hue");
    without_weights();
    require_min_rank(3);
  }
  Tensor call(const Tensor& given, bool training) override {
    Tensor x = cast(given, compute_dtype());
    for (const Layer& layer : sublayers()) x = layer(x, {.training = training});
    return x;
  }
};

}  // namespace

RandomHue::RandomHue(ShareRange factor, const ColourOptions& o)
    : Layer(make_layer<HueImpl>(factor, o)) {}
RandomSaturation::RandomSaturation(ShareRange factor, const ColourOptions& o)
    : Layer(make_layer<SaturationImpl>(factor, o)) {}
RandomColorDegeneration::RandomColorDegeneration(ShareRange factor, const ColourOptions& o)
    : Layer(make_layer<DegenerationImpl>(factor, o)) {}
RandomSharpness::RandomSharpness(ShareRange factor, const ColourOptions& o)
    : Layer(make_layer<SharpnessImpl>(factor, o)) {}
RandomPosterization::RandomPosterization(std::int64_t factor, const ColourOptions& o)
    : RandomPosterization(1, factor, o) {}
RandomPosterization::RandomPosterization(std::int64_t from, std::int64_t to, const ColourOptions& o)
    : Layer(make_layer<PosterizationImpl>(from, to, o)) {}
RandomColorJitter::RandomColorJitter(const ColorJitterOptions& o)
    : Layer(make_layer<JitterImpl>(o)) {}
Solarization::Solarization(const SolarizationOptions& o) : Layer(make_layer<SolarizationImpl>(o)) {}
AutoContrast::AutoContrast(const ColourOptions& o) : Layer(make_layer<AutoContrastImpl>(o)) {}
Equalization::Equalization(const EqualizationOptions& o) : Layer(make_layer<EqualizationImpl>(o)) {}

}  // namespace tandem::keras
