#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/reshaping.h"
#include "tandem/keras/layers/sizes.h"

namespace tandem::keras {

/// Each step `size` times: [batch, steps, channels] gives [batch, steps · size, channels].
class TANDEM_EXPORT UpSampling1D : public Layer {
 public:
  explicit UpSampling1D(std::int64_t size = 2, const NamedOptions& options = {});
};

struct UpSampling2DOptions {
  String data_format = "channels_last";  ///< or "channels_first"
  /// "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5"
  String interpolation = "nearest";
  String name = {};
  DTypePolicy dtype = {};
};
/// Images of `size` times the height and width.
class TANDEM_EXPORT UpSampling2D : public Layer {
 public:
  explicit UpSampling2D(Size2D size = 2, const UpSampling2DOptions& options = {});
};

struct UpSampling3DOptions {
  String data_format = "channels_last";
  String name = {};
  DTypePolicy dtype = {};
};
/// Volumes with each element `size` times along depth, height and width.
class TANDEM_EXPORT UpSampling3D : public Layer {
 public:
  explicit UpSampling3D(Size3D size = 2, const UpSampling3DOptions& options = {});
};

}  // namespace tandem::keras
