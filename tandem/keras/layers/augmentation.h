#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"

/// Random changes of images, [height, width, channels] or batches of them, while training; each
/// image of a batch has changes of its own. The numbers come from a seed generator
/// (tandem/keras/seed_generator.h), so that resumed trainings go on where they were. In
/// Dataset::map, call with {.training = true}.
namespace tandem::keras {

/// A range, or ± one number.
struct FactorRange {
  FactorRange(double both) : lower(-both), upper(both) {}
  FactorRange(double from, double to) : lower(from), upper(to) {}
  double lower, upper;
};

struct AugmentationOptions {
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// mode: "horizontal", "vertical" or "horizontal_and_vertical"; each with probability ½.
class TANDEM_EXPORT RandomFlip : public Layer {
 public:
  explicit RandomFlip(const String& mode = "horizontal_and_vertical",
                      const AugmentationOptions& options = {});
};
/// A window of this size, random while training, else the middle of the image resized to fit.
class TANDEM_EXPORT RandomCrop : public Layer {
 public:
  RandomCrop(std::int64_t height, std::int64_t width, const AugmentationOptions& options = {});
};

struct TransformOptions {
  String fill_mode = "reflect";       ///< or "wrap", "nearest", "constant"
  String interpolation = "bilinear";  ///< or "nearest"
  double fill_value = 0;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// By angles of this share of a full turn.
class TANDEM_EXPORT RandomRotation : public Layer {
 public:
  explicit RandomRotation(FactorRange factor, const TransformOptions& options = {});
};
/// By these shares of height and width.
class TANDEM_EXPORT RandomTranslation : public Layer {
 public:
  RandomTranslation(FactorRange height_factor, FactorRange width_factor,
                    const TransformOptions& options = {});
};
/// By 1 + factor: positive ones zoom out. Without a width_factor the aspect stays.
class TANDEM_EXPORT RandomZoom : public Layer {
 public:
  explicit RandomZoom(FactorRange height_factor, const TransformOptions& options = {});
  RandomZoom(FactorRange height_factor, FactorRange width_factor,
             const TransformOptions& options = {});
};

struct ColourOptions {
  double min_value = 0;  ///< the range of the values, to which results are cut
  double max_value = 255;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// Distances from each channel's mean times a factor from 1 - factor to 1 + factor.
class TANDEM_EXPORT RandomContrast : public Layer {
 public:
  explicit RandomContrast(double factor, const ColourOptions& options = {});
};
/// Shifted by shares of the range.
class TANDEM_EXPORT RandomBrightness : public Layer {
 public:
  explicit RandomBrightness(FactorRange factor, const ColourOptions& options = {});
};
/// Grey with this probability.
class TANDEM_EXPORT RandomGrayscale : public Layer {
 public:
  explicit RandomGrayscale(double factor = 0.5, const AugmentationOptions& options = {});
};
/// max_value - x with this probability.
class TANDEM_EXPORT RandomInvert : public Layer {
 public:
  explicit RandomInvert(double factor = 1, const ColourOptions& options = {});
};

}  // namespace tandem::keras
