#include "tandem/keras/layers/recurrent.h"

#include "tandem/keras/internal/rnn_impl.h"
#include "tandem/keras/layers/recurrent_cells.h"

namespace tandem::keras {
namespace {

// The arguments that a cell takes of its layer's.
template <class CellOptions, class Options>
CellOptions for_cell(const Options& o, const char* name) {
  return {.activation = o.activation,
          .use_bias = o.use_bias,
          .kernel_initializer = o.kernel_initializer,
          .recurrent_initializer = o.recurrent_initializer,
          .bias_initializer = o.bias_initializer,
          .kernel_regularizer = o.kernel_regularizer,
          .recurrent_regularizer = o.recurrent_regularizer,
          .bias_regularizer = o.bias_regularizer,
          .dropout = o.dropout,
          .recurrent_dropout = o.recurrent_dropout,
          .seed = o.seed,
          .name = name,
          .trainable = o.trainable,
          .dtype = o.dtype};
}

template <class Options>
std::shared_ptr<LayerImpl> around(const char* class_name, const Layer& cell, const Options& o) {
  RNNOptions options = internal::around_a_cell(o);
  options.zero_output_for_mask = o.zero_output_for_mask;
  return std::make_shared<internal::RNNImpl>(class_name, cell, options);
}

Layer simple_cell(std::int64_t units, const SimpleRNNOptions& o) {
  return SimpleRNNCell(units, for_cell<SimpleRNNCellOptions>(o, "simple_rnn_cell"));
}
Layer lstm_cell(std::int64_t units, const LSTMOptions& o) {
  auto options = for_cell<LSTMCellOptions>(o, "lstm_cell");
  options.recurrent_activation = o.recurrent_activation;
  options.unit_forget_bias = o.unit_forget_bias;
  return LSTMCell(units, options);
}
Layer gru_cell(std::int64_t units, const GRUOptions& o) {
  auto options = for_cell<GRUCellOptions>(o, "gru_cell");
  options.recurrent_activation = o.recurrent_activation;
  options.reset_after = o.reset_after;
  return GRUCell(units, options);
}

}  // namespace

SimpleRNN::SimpleRNN(std::int64_t units, const SimpleRNNOptions& o)
    : Layer(around("SimpleRNN", simple_cell(units, o), o)) {}
LSTM::LSTM(std::int64_t units, const LSTMOptions& o)
    : Layer(around("LSTM", lstm_cell(units, o), o)) {}
GRU::GRU(std::int64_t units, const GRUOptions& o) : Layer(around("GRU", gru_cell(units, o), o)) {}
RNN::RNN(const Layer& cell, const RNNOptions& o) : Layer(around("RNN", cell, o)) {}

}  // namespace tandem::keras
