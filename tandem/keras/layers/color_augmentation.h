#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/augmentation.h"

/// Changes of the colors of images while training; see augmentation.h. Values range from
/// `min_value` to `max_value`.
namespace tandem::keras {

/// From nothing to one number, or a range.
struct ShareRange {
  ShareRange(double to) : lower(0), upper(to) {}
  ShareRange(double from, double to) : lower(from), upper(to) {}
  double lower, upper;
};

/// Hues turned to either side by up to half of this share of the circle. Images of 3 channels, as
/// all here.
class TANDEM_EXPORT RandomHue : public Layer {
 public:
  explicit RandomHue(ShareRange factor, const ColourOptions& options = {});
};
/// Saturation times factor / (1 − factor): 0.5 changes nothing, 0 is grey.
class TANDEM_EXPORT RandomSaturation : public Layer {
 public:
  explicit RandomSaturation(ShareRange factor, const ColourOptions& options = {});
};
/// Towards grey by this share.
class TANDEM_EXPORT RandomColorDegeneration : public Layer {
 public:
  explicit RandomColorDegeneration(ShareRange factor, const ColourOptions& options = {});
};
/// 0 is blurred, 0.5 changes nothing, 1 sharpens.
class TANDEM_EXPORT RandomSharpness : public Layer {
 public:
  explicit RandomSharpness(ShareRange factor, const ColourOptions& options = {});
};
/// Only the highest bits of 8: as many as are drawn from `from` (by default 1) to below `to`, or
/// exactly that many if they are equal; 1 to 8.
class TANDEM_EXPORT RandomPosterization : public Layer {
 public:
  explicit RandomPosterization(std::int64_t factor, const ColourOptions& options = {});
  RandomPosterization(std::int64_t from, std::int64_t to, const ColourOptions& options = {});
};

struct ColorJitterOptions {
  double min_value = 0;
  double max_value = 255;
  std::optional<FactorRange> brightness_factor = std::nullopt;
  std::optional<double> contrast_factor = std::nullopt;
  std::optional<ShareRange> saturation_factor = std::nullopt;
  std::optional<ShareRange> hue_factor = std::nullopt;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// Brightness, contrast, saturation and hue, as far as they have a factor.
class TANDEM_EXPORT RandomColorJitter : public Layer {
 public:
  explicit RandomColorJitter(const ColorJitterOptions& options);
};

struct SolarizationOptions {
  ShareRange addition_factor = 0.0;   ///< of 255, is added first
  ShareRange threshold_factor = 0.0;  ///< of 255: larger values are inverted
  double min_value = 0;
  double max_value = 255;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
class TANDEM_EXPORT Solarization : public Layer {
 public:
  explicit Solarization(const SolarizationOptions& options = {});
};
/// Each channel of each image stretched to the whole range.
class TANDEM_EXPORT AutoContrast : public Layer {
 public:
  explicit AutoContrast(const ColourOptions& options = {});
};

struct EqualizationOptions {
  std::int64_t bins = 256;
  double min_value = 0;
  double max_value = 255;
  String name = {};
};
/// Values of each channel so that all are equally frequent.
class TANDEM_EXPORT Equalization : public Layer {
 public:
  explicit Equalization(const EqualizationOptions& options = {});
};

}  // namespace tandem::keras
