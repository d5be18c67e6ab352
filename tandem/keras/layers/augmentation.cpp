#include "tandem/keras/layers/augmentation.h"

#include <algorithm>
#include <functional>
#include <numbers>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/image_augmentation.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/keras/layers/preprocessing.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/random_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::keras {
namespace internal {

ImageAugmentation::ImageAugmentation(const char* class_name, const std::string& name,
                                     std::optional<std::int64_t> seed)
    : LayerImpl(class_name, {.name = name}), seeds_(add_seed_generator(seed)) {
  without_weights();
  require_min_rank(3);
}

Tensor ImageAugmentation::call(const Tensor& given, bool training) {
  const Tensor x = cast(given, compute_dtype());
  if (!training) return otherwise(x);
  if (given.rank() == 4) return change(x, shape(x)[0]);
  return squeeze(change(expand_dims(x, 0), Tensor(1)), {0});
}

Tensor ImageAugmentation::draw(const Tensor& count, double from, double to) {
  const IntList size(reshape(count, {1}));
  if (from == to) return fill(size, Tensor(from));
  return tandem::random::stateless_uniform(size, IntList(seeds_.next()),
                                           {.minval = from, .maxval = to});
}

Tensor ImageAugmentation::draw_for(const Tensor& images, const Tensor& count, double from,
                                   double to) {
  return cast(reshape(draw(count, from, to), {-1, 1, 1, 1}), images.dtype());
}

}  // namespace internal

// Keras' files have ranges as lists; it takes a number for ± that, too.
static ConfigValue to_config(const FactorRange& range) {
  return internal::to_config(std::vector<double>{range.lower, range.upper});
}
static void from_config(const ConfigValue& value, FactorRange& into) {
  std::vector<double> ends;
  internal::from_config(value, ends);
  if (ends.size() == 1) ends = {-ends[0], ends[0]};
  if (ends.size() != 2) throw InvalidArgumentError("the value is no range.");
  into = FactorRange(ends[0], ends[1]);
}
template <>
inline FactorRange internal::initial_argument<FactorRange>() {
  return {0, 0};
}

namespace {

using internal::ImageAugmentation;

// The arguments of all.
template <class Arguments, class Options>
void common(Arguments& a, Options& o) {
  a("seed", o.seed);
  a.fixed("data_format", "channels_last");
}
constexpr auto kFlip = [](auto& a, auto& o, auto& mode) {
  a("mode", mode);
  common(a, o);
};
constexpr auto kCrop = [](auto& a, auto& o, auto& height, auto& width) {
  a("height", height);
  a("width", width);
  common(a, o);
};
constexpr auto kTransform = [](auto& a, auto& o) {
  a("fill_mode", o.fill_mode);
  a("fill_value", o.fill_value);
  a("interpolation", o.interpolation);
  common(a, o);
};
constexpr auto kRotation = [](auto& a, auto& o, auto& factor) {
  a("factor", factor);
  kTransform(a, o);
};
constexpr auto kMoved = [](auto& a, auto& o, auto& height, auto& width) {
  a("height_factor", height);
  a("width_factor", width);
  kTransform(a, o);
};
constexpr auto kColour = [](auto& a, auto& o, auto& factor) {
  a("factor", factor);
  FactorRange range(o.min_value, o.max_value);
  a("value_range", range);
  if constexpr (!std::is_const_v<std::remove_reference_t<decltype(o)>>) {
    o.min_value = range.lower;
    o.max_value = range.upper;
  }
  common(a, o);
};
constexpr auto kGrey = [](auto& a, auto& o, auto& factor) {
  a("factor", factor);
  common(a, o);
};

class FlipImpl final : public ImageAugmentation {
 public:
  FlipImpl(const std::string& mode, const AugmentationOptions& o)
      : ImageAugmentation("RandomFlip", o.name, o.seed), mode_(mode) {
    if (mode != "horizontal" && mode != "vertical" && mode != "horizontal_and_vertical") {
      throw InvalidArgumentError(cat(
          "RandomFlip: mode is \"horizontal\", \"vertical\" or \"horizontal_and_vertical\", not "
          "'",
          mode, "'."));
    }
  }

 protected:
  Tensor change(const Tensor& images, const Tensor& count) override {
    Tensor x = images;
    if (mode_ != "vertical") x = where(draw_for(x, count, 0, 1) <= 0.5, reverse(x, {2}), x);
    if (mode_ != "horizontal") x = where(draw_for(x, count, 0, 1) <= 0.5, reverse(x, {1}), x);
    return x;
  }

 private:
  std::string mode_;
};

class CropImpl final : public ImageAugmentation {
 public:
  CropImpl(std::int64_t height, std::int64_t width, const AugmentationOptions& o)
      : ImageAugmentation("RandomCrop", o.name, o.seed), height_(height), width_(width) {
    internal::require_positive("RandomCrop", "height", height);
    internal::require_positive("RandomCrop", "width", width);
  }

 protected:
  Tensor change(const Tensor& x, const Tensor&) override {
    const std::int64_t h = x.dim(1), w = x.dim(2);
    if (h >= 0 && w >= 0 && (h < height_ || w < width_)) return otherwise(x);
    const Tensor sizes = shape(x);
    const auto offset = [&](const Tensor& size, std::int64_t wanted) {
      const Tensor room = cast(size - static_cast<int>(wanted) + 1, float32);
      return cast(floor(draw(Tensor(1), 0, 1)[0] * room), int32);
    };
    const Tensor begin =
        stack({Tensor(0), offset(sizes[1], height_), offset(sizes[2], width_), Tensor(0)});
    return slice(x, IntList(begin), {-1, height_, width_, -1});
  }
  Tensor otherwise(const Tensor& x) override {
    return Resizing(height_, width_, {.crop_to_aspect_ratio = true})(x);
  }

 private:
  std::int64_t height_, width_;
};

// Images moved by a matrix each.
class TransformImpl final : public ImageAugmentation {
 public:
  // The eight numbers of the transform, [count, 8], from height and width.
  using Matrix = std::function<Tensor(const Tensor& count, const Tensor& height,
                                      const Tensor& width, TransformImpl& self)>;
  TransformImpl(const char* class_name, Matrix matrix, const TransformOptions& o)
      : ImageAugmentation(class_name, o.name, o.seed), matrix_(std::move(matrix)), options_(o) {
    if (o.fill_mode != "reflect" && o.fill_mode != "wrap" && o.fill_mode != "nearest" &&
        o.fill_mode != "constant") {
      throw InvalidArgumentError(cat(class_name,
                                     ": fill_mode is \"reflect\", \"wrap\", \"nearest\" or "
                                     "\"constant\", not '",
                                     o.fill_mode, "'."));
    }
  }
  using ImageAugmentation::draw;

 protected:
  Tensor change(const Tensor& x, const Tensor& count) override {
    const Tensor sizes = shape(x);
    const Tensor transforms =
        matrix_(count, cast(sizes[1], float32), cast(sizes[2], float32), *this);
    const auto upper = [](std::string word) {
      for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      return word;
    };
    return raw_op("ImageProjectiveTransformV3",
                  {x, transforms, sizes[Slice(1, 3)], Tensor(options_.fill_value)},
                  {{"interpolation", upper(options_.interpolation)},
                   {"fill_mode", upper(options_.fill_mode)}})[0];
  }

 private:
  Matrix matrix_;
  TransformOptions options_;
};

// Rows of eight numbers, of which the last two are 0; each is a vector of one for each image.
Tensor rows_of(const std::vector<Tensor>& six) {
  std::vector<Tensor> all = six;
  const Tensor zero = zeros_like(six.front());
  all.push_back(zero);
  all.push_back(zero);
  return stack(all, 1);
}

Tensor rotation(FactorRange factor, const Tensor& count, const Tensor& h, const Tensor& w,
                TransformImpl& self) {
  const double turn = 2 * std::numbers::pi;
  const Tensor angle = self.draw(count, factor.lower, factor.upper) * turn;
  const Tensor c = cos(angle), s = sin(angle);
  const Tensor x = (w - 1 - (c * (w - 1) - s * (h - 1))) / 2.0;
  const Tensor y = (h - 1 - (s * (w - 1) + c * (h - 1))) / 2.0;
  return rows_of({c, -s, x, s, c, y});
}

Tensor translation(FactorRange height, FactorRange width, const Tensor& count, const Tensor& h,
                   const Tensor& w, TransformImpl& self) {
  const Tensor dy = self.draw(count, height.lower, height.upper) * h;
  const Tensor dx = self.draw(count, width.lower, width.upper) * w;
  const Tensor one = ones_like(dx), zero = zeros_like(dx);
  return rows_of({one, zero, -dx, zero, one, -dy});
}

Tensor zoom(FactorRange height, const std::optional<FactorRange>& width, const Tensor& count,
            const Tensor& h, const Tensor& w, TransformImpl& self) {
  const Tensor zy = self.draw(count, 1 + height.lower, 1 + height.upper);
  const Tensor zx = width ? self.draw(count, 1 + width->lower, 1 + width->upper) : zy;
  const Tensor zero = zeros_like(zy);
  return rows_of({zx, zero, (w - 1) / 2.0 * (1 - zx), zero, zy, (h - 1) / 2.0 * (1 - zy)});
}

class ContrastImpl final : public ImageAugmentation {
 public:
  ContrastImpl(FactorRange below_above, const ColourOptions& o)
      : ImageAugmentation("RandomContrast", o.name, o.seed), factor_(below_above), options_(o) {}

 protected:
  Tensor change(const Tensor& x, const Tensor& count) override {
    const Tensor f = draw_for(x, count, 1 - factor_.lower, 1 + factor_.upper);
    const Tensor mean = reduce_mean(x, {1, 2}, true);
    return clip_by_value((x - mean) * f + mean, options_.min_value, options_.max_value);
  }

 private:
  FactorRange factor_;
  ColourOptions options_;
};

class BrightnessImpl final : public ImageAugmentation {
 public:
  BrightnessImpl(FactorRange factor, const ColourOptions& o)
      : ImageAugmentation("RandomBrightness", o.name, o.seed), factor_(factor), options_(o) {}

 protected:
  Tensor change(const Tensor& x, const Tensor& count) override {
    const double range = options_.max_value - options_.min_value;
    const Tensor shift = draw_for(x, count, factor_.lower, factor_.upper) * range;
    return clip_by_value(x + shift, options_.min_value, options_.max_value);
  }

 private:
  FactorRange factor_;
  ColourOptions options_;
};

class GrayscaleImpl final : public ImageAugmentation {
 public:
  GrayscaleImpl(double factor, const AugmentationOptions& o)
      : ImageAugmentation("RandomGrayscale", o.name, o.seed), factor_(factor) {}

 protected:
  Tensor change(const Tensor& x, const Tensor& count) override {
    const Tensor grey = image::grayscale_to_rgb(image::rgb_to_grayscale(x));
    return where(draw_for(x, count, 0, 1) < factor_, grey, x);
  }

 private:
  double factor_;
};

class InvertImpl final : public ImageAugmentation {
 public:
  InvertImpl(FactorRange probability, const ColourOptions& o)
      : ImageAugmentation("RandomInvert", o.name, o.seed), factor_(probability), options_(o) {}

 protected:
  Tensor change(const Tensor& x, const Tensor& count) override {
    const Tensor probability = draw_for(x, count, factor_.lower, factor_.upper);
    return where(draw_for(x, count, 0, 1) < probability, options_.max_value - x, x);
  }

 private:
  FactorRange factor_;
  ColourOptions options_;
};

// With the arguments that `list` names.
template <class List, class... Positional, class F>
Layer transform(const char* class_name, const List& list, F matrix, const TransformOptions& options,
                const Positional&... positional) {
  return Layer(
      internal::with_arguments(std::make_shared<TransformImpl>(
                                   class_name, TransformImpl::Matrix(std::move(matrix)), options),
                               list, options, positional...));
}
Layer zoom_layer(FactorRange height, const std::optional<FactorRange>& width,
                 const TransformOptions& options) {
  return transform(
      "RandomZoom", kMoved,
      [=](const Tensor& count, const Tensor& h, const Tensor& w, TransformImpl& self) {
        return zoom(height, width, count, h, w, self);
      },
      options, height, width);
}
template <class Impl, class Options, class List, class... Positional>
Layer augmentation(const List& list, const Options& options, const Positional&... positional) {
  return Layer(internal::with_arguments(std::make_shared<Impl>(positional..., options), list,
                                        options, positional...));
}

Layer read_zoom(internal::ArgumentReader& arguments) {
  TransformOptions options;
  arguments.settings(options);
  FactorRange height(0);
  std::optional<FactorRange> width;
  kMoved(arguments, options, height, width);
  return zoom_layer(height, width, options);
}
// What lies below and above 1 may differ in a file.
template <class Impl>
Layer read_colour(internal::ArgumentReader& arguments) {
  ColourOptions options;
  arguments.settings(options);
  FactorRange factor(0);
  kColour(arguments, options, factor);
  return augmentation<Impl>(kColour, options, factor);
}

const bool kRegistered[] = {
    internal::register_layer_class<RandomFlip, AugmentationOptions, std::string>("RandomFlip",
                                                                                 kFlip),
    internal::register_layer_class<RandomCrop, AugmentationOptions, std::int64_t, std::int64_t>(
        "RandomCrop", kCrop),
    internal::register_layer_class<RandomRotation, TransformOptions, FactorRange>("RandomRotation",
                                                                                  kRotation),
    internal::register_layer_class<RandomTranslation, TransformOptions, FactorRange, FactorRange>(
        "RandomTranslation", kMoved),
    internal::ClassRegistry<Layer>::instance().add("RandomZoom", read_zoom),
    internal::ClassRegistry<Layer>::instance().add("RandomContrast", read_colour<ContrastImpl>),
    internal::ClassRegistry<Layer>::instance().add("RandomInvert", read_colour<InvertImpl>),
    internal::register_layer_class<RandomBrightness, ColourOptions, FactorRange>("RandomBrightness",
                                                                                 kColour),
    internal::register_layer_class<RandomGrayscale, AugmentationOptions, double>("RandomGrayscale",
                                                                                 kGrey)};

}  // namespace

RandomFlip::RandomFlip(const String& mode, const AugmentationOptions& options)
    : Layer(augmentation<FlipImpl>(kFlip, options, mode)) {}
RandomCrop::RandomCrop(std::int64_t height, std::int64_t width, const AugmentationOptions& options)
    : Layer(augmentation<CropImpl>(kCrop, options, height, width)) {}
namespace {

FactorRange fraction_of_a_turn(FactorRange factor) {
  if (!(factor.lower >= -1 && factor.upper <= 1 && factor.lower <= factor.upper)) {
    throw InvalidArgumentError(
        cat("RandomRotation: factor, a fraction of a full turn, must be a "
            "number or two in the range [-1, 1]. Received: ",
            factor.lower, " to ", factor.upper, "."));
  }
  return factor;
}

}  // namespace

RandomRotation::RandomRotation(FactorRange factor, const TransformOptions& options)
    : Layer(transform(
          "RandomRotation", kRotation,
          [factor](const Tensor& count, const Tensor& h, const Tensor& w, TransformImpl& self) {
            return rotation(factor, count, h, w, self);
          },
          options, fraction_of_a_turn(factor))) {}
RandomTranslation::RandomTranslation(FactorRange height, FactorRange width,
                                     const TransformOptions& options)
    : Layer(transform(
          "RandomTranslation", kMoved,
          [=](const Tensor& count, const Tensor& h, const Tensor& w, TransformImpl& self) {
            return translation(height, width, count, h, w, self);
          },
          options, height, width)) {}
RandomZoom::RandomZoom(FactorRange height, const TransformOptions& options)
    : Layer(zoom_layer(height, std::nullopt, options)) {}
RandomZoom::RandomZoom(FactorRange height, FactorRange width, const TransformOptions& options)
    : Layer(zoom_layer(height, width, options)) {}
// Keras' range has what lies below 1 and above it.
RandomContrast::RandomContrast(double factor, const ColourOptions& options)
    : Layer(augmentation<ContrastImpl>(kColour, options, FactorRange(factor, factor))) {}
RandomBrightness::RandomBrightness(FactorRange factor, const ColourOptions& options)
    : Layer(augmentation<BrightnessImpl>(kColour, options, factor)) {}
RandomGrayscale::RandomGrayscale(double factor, const AugmentationOptions& options)
    : Layer(augmentation<GrayscaleImpl>(kGrey, options, factor)) {}
RandomInvert::RandomInvert(double factor, const ColourOptions& options)
    : Layer(augmentation<InvertImpl>(kColour, options, FactorRange(factor, factor))) {}

}  // namespace tandem::keras
