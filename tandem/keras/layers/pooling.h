#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/sizes.h"

namespace tandem::keras {

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
  explicit MaxPooling1D(const Pooling1DOptions& options = {});
  explicit MaxPooling1D(std::int64_t pool_size)
      : MaxPooling1D(Pooling1DOptions{.pool_size = pool_size}) {}
};
/// … of images: [batch, height, width, channels].
class TANDEM_EXPORT MaxPooling2D : public Layer {
 public:
  explicit MaxPooling2D(const Pooling2DOptions& options = {});
  explicit MaxPooling2D(Size2D pool_size)
      : MaxPooling2D(Pooling2DOptions{.pool_size = pool_size}) {}
};
class TANDEM_EXPORT MaxPooling3D : public Layer {
 public:
  explicit MaxPooling3D(const Pooling3DOptions& options = {});
  explicit MaxPooling3D(Size3D pool_size)
      : MaxPooling3D(Pooling3DOptions{.pool_size = pool_size}) {}
};

/// The mean of each window and channel; padding does not count.
class TANDEM_EXPORT AveragePooling1D : public Layer {
 public:
  explicit AveragePooling1D(const Pooling1DOptions& options = {});
  explicit AveragePooling1D(std::int64_t pool_size)
      : AveragePooling1D(Pooling1DOptions{.pool_size = pool_size}) {}
};
class TANDEM_EXPORT AveragePooling2D : public Layer {
 public:
  explicit AveragePooling2D(const Pooling2DOptions& options = {});
  explicit AveragePooling2D(Size2D pool_size)
      : AveragePooling2D(Pooling2DOptions{.pool_size = pool_size}) {}
};
class TANDEM_EXPORT AveragePooling3D : public Layer {
 public:
  explicit AveragePooling3D(const Pooling3DOptions& options = {});
  explicit AveragePooling3D(Size3D pool_size)
      : AveragePooling3D(Pooling3DOptions{.pool_size = pool_size}) {}
};

}  // namespace tandem::keras
