#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/keras/layer.h"
#include "tandem/ops/conv_ops.h"

namespace tandem::keras {

/// Height and width of a window: one number for both, or {height, width}.
using Size2D = nn::Size2D;

struct Pooling2DOptions {
  Size2D pool_size = 2;
  std::optional<Size2D> strides = std::nullopt;  ///< pool_size by default
  std::string padding = "valid";                 ///< or "same"
  std::string data_format = "channels_last";     ///< or "channels_first"
  std::string name = {};
};

/// The largest value of each window and channel: [batch, height, width, channels].
class TANDEM_EXPORT MaxPooling2D : public Layer {
 public:
  explicit MaxPooling2D(const Pooling2DOptions& options = {});
  explicit MaxPooling2D(Size2D pool_size)
      : MaxPooling2D(Pooling2DOptions{.pool_size = pool_size}) {}
};

/// The mean of each window and channel; padding does not count.
class TANDEM_EXPORT AveragePooling2D : public Layer {
 public:
  explicit AveragePooling2D(const Pooling2DOptions& options = {});
  explicit AveragePooling2D(Size2D pool_size)
      : AveragePooling2D(Pooling2DOptions{.pool_size = pool_size}) {}
};

struct GlobalPooling2DOptions {
  std::string data_format = "channels_last";
  bool keepdims = false;
  std::string name = {};
};

/// The mean, or the largest value, of each channel of the whole image: [batch, channels].
class TANDEM_EXPORT GlobalAveragePooling2D : public Layer {
 public:
  explicit GlobalAveragePooling2D(const GlobalPooling2DOptions& options = {});
};
class TANDEM_EXPORT GlobalMaxPooling2D : public Layer {
 public:
  explicit GlobalMaxPooling2D(const GlobalPooling2DOptions& options = {});
};

}  // namespace tandem::keras
