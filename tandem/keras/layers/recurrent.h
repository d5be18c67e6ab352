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
#include "tandem/keras/regularizers.h"

namespace tandem::keras {

// Layers that go through sequences [batch, steps, features] step by step. The result is [batch,
// units], or [batch, steps, units] with return_sequences. Further inputs are the first states
// (zeros by default), [batch, units] each. Steps that the mask [batch, steps] leaves out change
// nothing: state and output stay what they were. The part of the work that needs no state is done
// for all steps at once, the rest in a loop (td::while_loop).

struct SimpleRNNOptions {
  ActivationFunction activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;             ///< of the inputs, the same for all steps
  double recurrent_dropout = 0;   ///< of the state, the same for all steps
  bool return_sequences = false;  ///< the output of every step, not the last one alone
  bool return_state = false;      ///< further outputs: the last states
  bool go_backwards = false;      ///< from the last step to the first
  bool unroll = false;            ///< steps one after the other in the graph, not a loop
  std::optional<std::int64_t> seed = std::nullopt;
  bool zero_output_for_mask = false;  ///< outputs of masked steps: zeros, not the one before
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
class TANDEM_EXPORT SimpleRNN : public Layer {
 public:
  explicit SimpleRNN(std::int64_t units, const SimpleRNNOptions& options = {});
};

struct LSTMOptions {
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
  double dropout = 0;            ///< of the inputs, the same for all steps
  double recurrent_dropout = 0;  ///< of the state, the same for all steps
  std::optional<std::int64_t> seed = std::nullopt;
  bool return_sequences = false;      ///< the output of every step, not the last one alone
  bool return_state = false;          ///< further outputs: the last states
  bool go_backwards = false;          ///< from the last step to the first
  bool unroll = false;                ///< steps one after the other in the graph, not a loop
  bool zero_output_for_mask = false;  ///< outputs of masked steps: zeros, not the one before
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
class TANDEM_EXPORT LSTM : public Layer {
 public:
  explicit LSTM(std::int64_t units, const LSTMOptions& options = {});
};

struct GRUOptions {
  ActivationFunction activation = "tanh";
  ActivationFunction recurrent_activation = "sigmoid";  ///< of the gates
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0;            ///< of the inputs, the same for all steps
  double recurrent_dropout = 0;  ///< of the state, the same for all steps
  std::optional<std::int64_t> seed = std::nullopt;
  bool return_sequences = false;      ///< the output of every step, not the last one alone
  bool return_state = false;          ///< further outputs: the last states
  bool go_backwards = false;          ///< from the last step to the first
  bool unroll = false;                ///< steps one after the other in the graph, not a loop
  bool zero_output_for_mask = false;  ///< outputs of masked steps: zeros, not the one before
  /// Whether the reset gate works on the state's product (as cuDNN does) or on the state.
  bool reset_after = true;
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
class TANDEM_EXPORT GRU : public Layer {
 public:
  explicit GRU(std::int64_t units, const GRUOptions& options = {});
};

struct RNNOptions {
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool unroll = false;
  bool zero_output_for_mask = false;
  Regularizer activity_regularizer = {};
  String name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};
/// A recurrent layer of a cell: LSTMCell and its like, or one of your own (RNNCellImpl).
class TANDEM_EXPORT RNN : public Layer {
 public:
  explicit RNN(const Layer& cell, const RNNOptions& options = {});
};

}  // namespace tandem::keras
