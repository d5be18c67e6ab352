#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/activations.h"
#include "tandem/keras/constraints.h"
#include "tandem/keras/initializers.h"
#include "tandem/keras/layer.h"
#include "tandem/keras/layers/reshaping.h"
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

// One step of a recurrent layer: called with {inputs [batch, features], states...} it gives
// {output, states...}. RNN makes a layer of one.

struct SimpleRNNCellOptions {
  ActivationFunction activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;            ///< of the inputs, the same for all steps
  double recurrent_dropout = 0;  ///< of the state, the same for all steps
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// activation(inputs · kernel + state · recurrent_kernel + bias)
class TANDEM_EXPORT SimpleRNNCell : public Layer {
 public:
  explicit SimpleRNNCell(std::int64_t units, const SimpleRNNCellOptions& options = {});
};

struct LSTMCellOptions {
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
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;            ///< of the inputs, the same for all steps
  double recurrent_dropout = 0;  ///< of the state, the same for all steps
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// Long short-term memory (Hochreiter and Schmidhuber 1997): two states, output and carry.
class TANDEM_EXPORT LSTMCell : public Layer {
 public:
  explicit LSTMCell(std::int64_t units, const LSTMCellOptions& options = {});
};

struct GRUCellOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";  ///< of the gates
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;            ///< of the inputs, the same for all steps
  double recurrent_dropout = 0;  ///< of the state, the same for all steps
  /// Whether the reset gate works on the state's product (as cuDNN does) or on the state.
  bool reset_after = true;
  std::optional<std::int64_t> seed = std::nullopt;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// Gated recurrent unit (Cho et al. 2014): one state.
class TANDEM_EXPORT GRUCell : public Layer {
 public:
  explicit GRUCell(std::int64_t units, const GRUCellOptions& options = {});
};

/// Cells one upon the other: each takes the output of the one before. The states are those of all
/// cells in order.
///
///     RNN(StackedRNNCells({LSTMCell(32), LSTMCell(16)}), {.return_sequences = true})
class TANDEM_EXPORT StackedRNNCells : public Layer {
 public:
  explicit StackedRNNCells(const std::vector<Layer>& cells, const NamedOptions& options = {});
};

}  // namespace tandem::keras
