#include "tandem/keras/layers/augmentation.h"

#include <algorithm>
#include <functional>
#include <numbers>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
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

namespace {

using internal::ImageAugmentation;

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
  void describe(Config& config) const override { config.set("mode", mode_); }

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
  void describe(Config& config) const override {
    config.set("height", height_).set("width", width_);
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
  ContrastImpl(double factor, const ColourOptions& o)
      : ImageAugmentation("RandomContrast", o.name, o.seed), factor_(factor), options_(o) {}

 protected:
  Tensor change(const Tensor& x, const Tensor& count) override {
    const Tensor f = draw_for(x, count, 1 - factor_, 1 + factor_);
    const Tensor mean = reduce_mean(x, {1, 2}, true);
    return clip_by_value((x - mean) * f + mean, options_.min_value, options_.max_value);
  }

 private:
  double factor_;
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
  InvertImpl(double factor, const ColourOptions& o)
      : ImageAugmentation("RandomInvert", o.name, o.seed), factor_(factor), options_(o) {}

 protected:
  Tensor change(const Tensor& x, const Tensor& count) override {
    return where(draw_for(x, count, 0, 1) < factor_, options_.max_value - x, x);
  }

 private:
  double factor_;
  ColourOptions options_;
};

template <class F>
Layer transform(const char* class_name, F matrix, const TransformOptions& options) {
  return make_layer<TransformImpl>(class_name, TransformImpl::Matrix(std::move(matrix)), options);
}

}  // namespace

RandomFlip::RandomFlip(const std::string& mode, const AugmentationOptions& options)
    : Layer(make_layer<FlipImpl>(mode, options)) {}
RandomCrop::RandomCrop(std::int64_t height, std::int64_t width, const AugmentationOptions& options)
    : Layer(make_layer<CropImpl>(height, width, options)) {}
RandomRotation::RandomRotation(FactorRange factor, const TransformOptions& options)
    : Layer(transform(
          "RandomRotation",
          [factor](const Tensor& count, const Tensor& h, const Tensor& w, TransformImpl& self) {
            return rotation(factor, count, h, w, self);
          },
          options)) {}
RandomTranslation::RandomTranslation(FactorRange height, FactorRange width,
                                     const TransformOptions& options)
    : Layer(transform(
          "RandomTranslation",
          [=](const Tensor& count, const Tensor& h, const Tensor& w, TransformImpl& self) {
            return translation(height, width, count, h, w, self);
          },
          options)) {}
RandomZoom::RandomZoom(FactorRange height, const TransformOptions& options)
    : Layer(transform(
          "RandomZoom",
          [=](const Tensor& count, const Tensor& h, const Tensor& w, TransformImpl& self) {
            return zoom(height, std::nullopt, count, h, w, self);
          },
          options)) {}
RandomZoom::RandomZoom(FactorRange height, FactorRange width, const TransformOptions& options)
    : Layer(transform(
          "RandomZoom",
          [=](const Tensor& count, const Tensor& h, const Tensor& w, TransformImpl& self) {
            return zoom(height, width, count, h, w, self);
          },
          options)) {}
RandomContrast::RandomContrast(double factor, const ColourOptions& options)
    : Layer(make_layer<ContrastImpl>(factor, options)) {}
RandomBrightness::RandomBrightness(FactorRange factor, const ColourOptions& options)
    : Layer(make_layer<BrightnessImpl>(factor, options)) {}
RandomGrayscale::RandomGrayscale(double factor, const AugmentationOptions& options)
    : Layer(make_layer<GrayscaleImpl>(factor, options)) {}
RandomInvert::RandomInvert(double factor, const ColourOptions& options)
    : Layer(make_layer<InvertImpl>(factor, options)) {}

}  // namespace tandem::keras
