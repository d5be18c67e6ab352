#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/augmentation.h"
#include "tandem/keras/layers/color_augmentation.h"
#include "tandem/keras/positional.h"

/// Further changes of images while training: parts erased, images mixed, blurred and bent, and
/// policies that draw among all of them; see augmentation.h.
namespace tandem::keras {

struct ErasingOptions {
  ShareRange factor = 1.0;                          ///< of images
  ShareRange scale = {0.02, 0.33};                  ///< of the area
  std::optional<double> fill_value = std::nullopt;  ///< noise by default
  double min_value = 0;
  double max_value = 255;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// A rectangle of each image filled.
class TANDEM_EXPORT RandomErasing : public Layer {
 public:
  explicit RandomErasing(const ErasingOptions& options = {});
};

struct MixUpOptions {
  double alpha = 0.2;  ///< of the beta distribution of the weights
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// Weighted means of an image and another one of the batch. Given images and one-hot labels,
/// `layer.outputs({images, labels}, {.training = true})` mixes both.
class TANDEM_EXPORT MixUp : public Layer {
 public:
  explicit MixUp(const MixUpOptions& options = {});
  template <internal::Number T>
  explicit MixUp(T alpha, const MixUpOptions& options = {})
      : MixUp(internal::with_argument(options, &MixUpOptions::alpha, alpha, "alpha")) {}
};

struct CutMixOptions {
  ShareRange factor = 1.0;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// A rectangle of each image from another one of the batch; labels are mixed by area, as in MixUp.
class TANDEM_EXPORT CutMix : public Layer {
 public:
  explicit CutMix(const CutMixOptions& options = {});
};

struct GaussianBlurOptions {
  ShareRange factor = 1.0;       ///< of images
  std::int64_t kernel_size = 3;  ///< odd
  ShareRange sigma = 1.0;
  double min_value = 0;
  double max_value = 255;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
class TANDEM_EXPORT RandomGaussianBlur : public Layer {
 public:
  explicit RandomGaussianBlur(const GaussianBlurOptions& options = {});
};

/// Slanted by these shares along x and y.
class TANDEM_EXPORT RandomShear : public Layer {
 public:
  explicit RandomShear(FactorRange x_factor = 0.0, FactorRange y_factor = 0.0,
                       const TransformOptions& options = {});
};

struct PerspectiveOptions {
  ShareRange factor = 1.0;  ///< of images
  double scale = 1;         ///< how far corners move
  String interpolation = "bilinear";
  double fill_value = 0;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// As if seen from another side.
class TANDEM_EXPORT RandomPerspective : public Layer {
 public:
  explicit RandomPerspective(const PerspectiveOptions& options = {});
};

struct RandAugmentOptions {
  double min_value = 0;
  double max_value = 255;
  std::int64_t num_ops = 2;  ///< changes one after the other, of eleven kinds
  double factor = 0.5;       ///< how strong they are
  String interpolation = "bilinear";
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// Cubuk et al. 2019.
class TANDEM_EXPORT RandAugment : public Layer {
 public:
  explicit RandAugment(const RandAugmentOptions& options = {});
};

struct AugMixOptions {
  double min_value = 0;
  double max_value = 255;
  std::int64_t num_chains = 3;
  std::int64_t chain_depth = 3;
  double factor = 0.3;
  double alpha = 1;
  bool all_ops = true;  ///< also brightness, color, contrast and sharpness
  String interpolation = "bilinear";
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
};
/// Several chains of changes, mixed with each other and with the image (Hendrycks et al. 2019).
class TANDEM_EXPORT AugMix : public Layer {
 public:
  explicit AugMix(const AugMixOptions& options = {});
};

}  // namespace tandem::keras
