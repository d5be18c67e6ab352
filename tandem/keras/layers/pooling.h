#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/sizes.h"

namespace tandem::keras {

// A window by position, `MaxPooling2D(2, {.strides = 1})`, or all by name. The constructors from
// options are templates: braces without names, `MaxPooling2D({2, 2})`, are a window.

/// Size is a number, Size2D or Size3D: what there is for each spatial axis.
template <class Size>
struct PoolingOptions {
  Size pool_size = 2;
  std::optional<Size> strides = std::nullopt;  ///< pool_size by default
  String padding = "valid";                    ///< or "same"
  String data_format = "channels_last";        ///< or "channels_first"
  String name = {};
  DTypePolicy dtype = {};
};
using Pooling1DOptions = PoolingOptions<std::int64_t>;
using Pooling2DOptions = PoolingOptions<Size2D>;
using Pooling3DOptions = PoolingOptions<Size3D>;

/// The largest value of each window and channel: [batch, steps, channels].
class TANDEM_EXPORT MaxPooling1D : public Layer {
 public:
  template <int = 0>
  explicit MaxPooling1D(const Pooling1DOptions& options = {})
      : MaxPooling1D(options.pool_size, options) {}
  explicit MaxPooling1D(std::int64_t pool_size, const Pooling1DOptions& options = {});
};
/// … of images: [batch, height, width, channels].
class TANDEM_EXPORT MaxPooling2D : public Layer {
 public:
  template <int = 0>
  explicit MaxPooling2D(const Pooling2DOptions& options = {})
      : MaxPooling2D(options.pool_size, options) {}
  explicit MaxPooling2D(Size2D pool_size, const Pooling2DOptions& options = {});
};
class TANDEM_EXPORT MaxPooling3D : public Layer {
 public:
  template <int = 0>
  explicit MaxPooling3D(const Pooling3DOptions& options = {})
      : MaxPooling3D(options.pool_size, options) {}
  explicit MaxPooling3D(Size3D pool_size, const Pooling3DOptions& options = {});
};

/// The mean of each window and channel; padding does not count.
class TANDEM_EXPORT AveragePooling1D : public Layer {
 public:
  template <int = 0>
  explicit AveragePooling1D(const Pooling1DOptions& options = {})
      : AveragePooling1D(options.pool_size, options) {}
  explicit AveragePooling1D(std::int64_t pool_size, const Pooling1DOptions& options = {});
};
class TANDEM_EXPORT AveragePooling2D : public Layer {
 public:
  template <int = 0>
  explicit AveragePooling2D(const Pooling2DOptions& options = {})
      : AveragePooling2D(options.pool_size, options) {}
  explicit AveragePooling2D(Size2D pool_size, const Pooling2DOptions& options = {});
};
class TANDEM_EXPORT AveragePooling3D : public Layer {
 public:
  template <int = 0>
  explicit AveragePooling3D(const Pooling3DOptions& options = {})
      : AveragePooling3D(options.pool_size, options) {}
  explicit AveragePooling3D(Size3D pool_size, const Pooling3DOptions& options = {});
};

}  // namespace tandem::keras
