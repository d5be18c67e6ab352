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

template <class Size>
struct SeparableConvOptions {
  Size strides = 1;
  String padding = "valid";  ///< or "same"
  String data_format = "channels_last";
  Size dilation_rate = 1;
  std::int64_t depth_multiplier = 1;  ///< depthwise filters for each input channel
  ActivationFunction activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer pointwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
using SeparableConv1DOptions = SeparableConvOptions<std::int64_t>;
using SeparableConv2DOptions = SeparableConvOptions<Size2D>;

/// Convolution of each channel by itself, then a mix of the channels at each place.
class TANDEM_EXPORT SeparableConv1D : public Layer {
 public:
  SeparableConv1D(std::int64_t filters, std::int64_t kernel_size,
                  const SeparableConv1DOptions& options = {});
};
class TANDEM_EXPORT SeparableConv2D : public Layer {
 public:
  SeparableConv2D(std::int64_t filters, Size2D kernel_size,
                  const SeparableConv2DOptions& options = {});
};

}  // namespace tandem::keras
