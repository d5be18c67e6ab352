#pragma once

#include <cstdint>
#include <optional>
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
struct ConvTransposeOptions {
  Size strides = 1;
  String padding = "valid";                           ///< or "same": input · strides
  std::optional<Size> output_padding = std::nullopt;  ///< more at the end, less than strides
  String data_format = "channels_last";
  Size dilation_rate = 1;
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
using Conv1DTransposeOptions = ConvTransposeOptions<std::int64_t>;
using Conv2DTransposeOptions = ConvTransposeOptions<Size2D>;
using Conv3DTransposeOptions = ConvTransposeOptions<Size3D>;

/// Convolution the other way round, as its gradient goes: enlarges by the strides.
class TANDEM_EXPORT Conv1DTranspose : public Layer {
 public:
  Conv1DTranspose(std::int64_t filters, std::int64_t kernel_size,
                  const Conv1DTransposeOptions& options = {});
};
class TANDEM_EXPORT Conv2DTranspose : public Layer {
 public:
  Conv2DTranspose(std::int64_t filters, Size2D kernel_size,
                  const Conv2DTransposeOptions& options = {});
};
class TANDEM_EXPORT Conv3DTranspose : public Layer {
 public:
  Conv3DTranspose(std::int64_t filters, Size3D kernel_size,
                  const Conv3DTransposeOptions& options = {});
};

}  // namespace tandem::keras
