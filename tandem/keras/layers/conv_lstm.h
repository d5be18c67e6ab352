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
struct ConvLSTMOptions {
  Size strides = 1;
  String padding = "valid";              ///< or "same"; the state's is always "same"
  String data_format = "channels_last";  ///< or "channels_first"
  Size dilation_rate = 1;
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";  ///< of the gates
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;  ///< the forget gate begins open: its bias is 1
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;            ///< of the inputs
  double recurrent_dropout = 0;  ///< of the state, the same for all steps
  std::optional<std::int64_t> seed = std::nullopt;
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool unroll = false;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// LSTM whose products are convolutions (Shi et al. 2015), for sequences of rows, images or volumes.
// The result has the shape that a convolution gives each step. Spatial sizes must be known.

/// [batch, steps, size, channels]
class TANDEM_EXPORT ConvLSTM1D : public Layer {
 public:
  ConvLSTM1D(std::int64_t filters, std::int64_t kernel_size,
             const ConvLSTMOptions<std::int64_t>& options = {});
};
/// [batch, steps, height, width, channels]
class TANDEM_EXPORT ConvLSTM2D : public Layer {
 public:
  ConvLSTM2D(std::int64_t filters, Size2D kernel_size, const ConvLSTMOptions<Size2D>& options = {});
};
/// [batch, steps, depth, height, width, channels]
class TANDEM_EXPORT ConvLSTM3D : public Layer {
 public:
  ConvLSTM3D(std::int64_t filters, Size3D kernel_size, const ConvLSTMOptions<Size3D>& options = {});
};

}  // namespace tandem::keras
