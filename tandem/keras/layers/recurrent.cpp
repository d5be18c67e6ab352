#include "tandem/keras/layers/recurrent.h"

#include "tandem/keras/internal/class_registry.h"
#include "tandem/keras/internal/recurrent_arguments.h"
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
          .kernel_constraint = o.kernel_constraint,
          .recurrent_constraint = o.recurrent_constraint,
          .bias_constraint = o.bias_constraint,
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

constexpr auto kWithCell = [](auto& a, auto& o, auto& units) {
  internal::kCellArguments(a, o, units);
  internal::kLoopArguments(a, o);
};
constexpr auto kRNN = [](auto& a, auto& o, auto& cell) {
  a("cell", cell);
  internal::kLoopArguments(a, o);
};

}  // namespace

SimpleRNN::SimpleRNN(std::int64_t units, const SimpleRNNOptions& o)
    : Layer(internal::with_arguments(around("SimpleRNN", simple_cell(units, o), o), kWithCell, o,
                                     units)) {}
LSTM::LSTM(std::int64_t units, const LSTMOptions& o)
    : Layer(internal::with_arguments(around("LSTM", lstm_cell(units, o), o), kWithCell, o, units)) {
}
GRU::GRU(std::int64_t units, const GRUOptions& o)
    : Layer(internal::with_arguments(around("GRU", gru_cell(units, o), o), kWithCell, o, units)) {}
RNN::RNN(const Layer& cell, const RNNOptions& o)
    : Layer(internal::with_arguments(around("RNN", cell, o), kRNN, o, cell)) {}

namespace {
const bool kRegistered[] = {
    internal::register_layer_class<SimpleRNN, SimpleRNNOptions, std::int64_t>("SimpleRNN",
                                                                              kWithCell),
    internal::register_layer_class<LSTM, LSTMOptions, std::int64_t>("LSTM", kWithCell),
    internal::register_layer_class<GRU, GRUOptions, std::int64_t>("GRU", kWithCell),
    internal::register_layer_class<RNN, RNNOptions, Layer>("RNN", kRNN)};
}  // namespace

}  // namespace tandem::keras
