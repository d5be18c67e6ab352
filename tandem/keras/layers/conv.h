#pragma once

#include <cstdint>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/sizes.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

/// Size is a number, Size2D or Size3D: what there is for each spatial axis.
template <class Size>
struct ConvOptions {
  Size strides = 1;
  String padding = "valid";              ///< or "same": the size of the input / strides
  String data_format = "channels_last";  ///< or "channels_first"
  Size dilation_rate = 1;
  std::int64_t groups = 1;  ///< channels are split into so many groups that do not mix
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// padding may also be "causal": no position sees later ones.
using Conv1DOptions = ConvOptions<std::int64_t>;
using Conv2DOptions = ConvOptions<Size2D>;
using Conv3DOptions = ConvOptions<Size3D>;

/// Convolution of sequences with `filters` filters, then bias and activation:
/// [batch, steps, channels] gives [batch, steps', filters].
class TANDEM_EXPORT Conv1D : public Layer {
 public:
  Conv1D(std::int64_t filters, std::int64_t kernel_size, const Conv1DOptions& options = {});
};

/// … of images: [batch, height, width, channels] gives [batch, height', width', filters].
class TANDEM_EXPORT Conv2D : public Layer {
 public:
  Conv2D(std::int64_t filters, Size2D kernel_size, const Conv2DOptions& options = {});
};

/// … of volumes: [batch, depth, height, width, channels].
class TANDEM_EXPORT Conv3D : public Layer {
 public:
  Conv3D(std::int64_t filters, Size3D kernel_size, const Conv3DOptions& options = {});
};

template <class Size>
struct DepthwiseConvOptions {
  Size strides = 1;
  String padding = "valid";
  std::int64_t depth_multiplier = 1;  ///< filters for each input channel
  String data_format = "channels_last";
  Size dilation_rate = 1;
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
using DepthwiseConv1DOptions = DepthwiseConvOptions<std::int64_t>;
using DepthwiseConv2DOptions = DepthwiseConvOptions<Size2D>;

/// Convolution of each channel by itself.
class TANDEM_EXPORT DepthwiseConv1D : public Layer {
 public:
  explicit DepthwiseConv1D(std::int64_t kernel_size, const DepthwiseConv1DOptions& options = {});
};
class TANDEM_EXPORT DepthwiseConv2D : public Layer {
 public:
  explicit DepthwiseConv2D(Size2D kernel_size, const DepthwiseConv2DOptions& options = {});
};

}  // namespace tandem::keras
