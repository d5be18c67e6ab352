#include "tandem/keras/layers/recurrent.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/rnn_impl.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/layers/recurrent_cells.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras {
namespace internal {

RNNImpl::RNNImpl(const std::string& class_name, const Layer& cell, const RNNOptions& o)
    : LayerImpl(class_name, {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
      cell_layer_(cell),
      cell_(std::dynamic_pointer_cast<RNNCellImpl>(cell.impl())),
      options_(o) {
  if (!cell_) {
    throw InvalidArgumentError(cat(class_name, ": the cell must be a layer such as LSTMCell, or of "
                                               "a class derived from RNNCellImpl. Received: ",
                                   cell.describe(), "."));
  }
  add_layer(cell);
}

void RNNImpl::build_many(const std::vector<PartialShape>& inputs) {
  const PartialShape& sequence = inputs.at(0);
  if (sequence.rank() < 3) {
    throw InvalidArgumentError(cat(prefix(), "expects sequences [batch, steps, features], ",
                                   "but the input has shape ", shape_text(sequence), "."));
  }
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < sequence.rank(); ++i) {
    if (i != 1) sizes.push_back(sequence.dim(i));
  }
  build_within(cell_layer_, {PartialShape(sizes)});
}

// The inputs of all steps, and what the steps share.
struct RNNImpl::Loop {
  Tensor inputs;           ///< as `project` gave them, [steps, batch, ...]
  std::int64_t num_steps;  ///< -1: not known
  std::vector<Tensor> constants;
};

std::vector<Tensor> RNNImpl::first_states(const Tensor& sequence) const {
  std::vector<Tensor> states;
  for (const std::int64_t size : cell_->state_sizes()) {
    const std::int64_t batch = sequence.dim(0);
    states.push_back(
        batch >= 0 ? zeros({batch, size}, dtype())
                   : zeros(IntList(concat({slice(shape(sequence), {0}, {1}),
                                           IntList{size}.tensor(int32)},
                                          0)),
                           dtype()));
  }
  return states;
}

std::vector<Tensor> RNNImpl::call_many(std::span<const Tensor> inputs, const CallOptions& how) {
  const Tensor& sequence = inputs[0];
  if (sequence.rank() < 3 || (inputs.size() != 1 && inputs.size() != 1 + num_states())) {
    throw InvalidArgumentError(cat(prefix(), "takes sequences [batch, steps, features] and none ",
                                   "or all of its ", num_states(), " first state(s). Received ",
                                   inputs.size(), " tensor(s), the first of shape ",
                                   shape_text(sequence.partial_shape()), "."));
  }
  std::vector<Tensor> states(inputs.begin() + 1, inputs.end());
  if (states.empty()) states = first_states(sequence);
  const bool training = how.is_training();
  const Tensor projected = cell_->project(sequence, training);
  std::vector<std::int64_t> time_first{1, 0};
  for (int i = 2; i < projected.rank(); ++i) time_first.push_back(i);
  const Loop loop{transpose(projected, time_first), sequence.dim(1),
                  cell_->constants(sequence, training)};
  if (loop.num_steps == 0) {
    throw InvalidArgumentError(cat(prefix(), "the sequences have no steps."));
  }
  const Tensor output = options_.unroll ? unrolled(loop, states) : looped(loop, states);
  if (options_.activity_regularizer.defined()) {
    add_loss(activity_penalty(options_.activity_regularizer, output));
  }
  std::vector<Tensor> results{output};
  if (options_.return_state) results.insert(results.end(), states.begin(), states.end());
  return results;
}

Tensor RNNImpl::unrolled(const Loop& loop, std::vector<Tensor>& states) const {
  if (loop.num_steps < 0) {
    throw InvalidArgumentError(cat(prefix(), "cannot unroll a RNN if the time dimension is not ",
                                   "known. Give it in Input, or leave `unroll` out."));
  }
  std::vector<Tensor> steps = unstack(loop.inputs, loop.num_steps);
  if (options_.go_backwards) std::reverse(steps.begin(), steps.end());
  std::vector<Tensor> outputs;
  for (const Tensor& x : steps) {
    std::vector<Tensor> next = cell_->step(x, states, loop.constants);
    outputs.push_back(next[0]);
    states.assign(next.begin() + 1, next.end());
  }
  return options_.return_sequences ? stack(outputs, 1) : outputs.back();
}

Tensor RNNImpl::looped(const Loop& loop, std::vector<Tensor>& states) const {
  const Tensor steps = loop.num_steps >= 0 ? Tensor(static_cast<int>(loop.num_steps))
                                           : index(shape(loop.inputs), {0});
  PartialShape step_shape = loop.inputs.partial_shape();
  std::vector<std::int64_t> sizes;
  for (int i = 1; i < step_shape.rank(); ++i) sizes.push_back(step_shape.dim(i));
  step_shape = PartialShape(sizes);
  const DType input_dtype = loop.inputs.dtype();
  const Tensor inputs = list_ops::from_tensor(loop.inputs);
  const bool all = options_.return_sequences;

  // What goes round: the number of the step, the outputs so far (their list, or the last one), and
  // the states.
  const std::int64_t size = cell_->state_sizes()[0];
  const PartialShape output_shape(std::vector<std::int64_t>{loop.inputs.dim(1), size});
  std::vector<Tensor> round{Tensor(0)};
  round.push_back(all ? list_ops::empty_tensor_list(dtype(), output_shape)
                      : zeros_like(states[0]));
  round.insert(round.end(), states.begin(), states.end());
  round = while_loop(
      [&](const std::vector<Tensor>& v) { return v[0] < steps; },
      [&](const std::vector<Tensor>& v) {
        const Tensor at = options_.go_backwards ? steps - 1 - v[0] : v[0];
        const Tensor x = list_ops::get_item(inputs, at, input_dtype, step_shape);
        const std::vector<Tensor> next =
            cell_->step(x, std::span<const Tensor>(v).subspan(2), loop.constants);
        std::vector<Tensor> now{v[0] + 1, all ? list_ops::push_back(v[1], next[0]) : next[0]};
        now.insert(now.end(), next.begin() + 1, next.end());
        return now;
      },
      round);
  states.assign(round.begin() + 2, round.end());
  if (!all) return round[1];
  const Tensor outputs = transpose(list_ops::stack(round[1], dtype(), output_shape), {1, 0, 2});
  // The list does not know its length while tracing; we may.
  if (loop.num_steps < 0 || outputs.partial_shape().is_fully_known()) return outputs;
  return reshape(outputs, {loop.inputs.dim(1), loop.num_steps, size});
}

void RNNImpl::describe(Config& config) const {
  cell_->describe(config);
  config.set("return_sequences", options_.return_sequences);
  config.set("return_state", options_.return_state);
  config.set("go_backwards", options_.go_backwards).set("unroll", options_.unroll);
}

Layer RNNImpl::copy(const std::string& name, bool go_backwards) const {
  RNNOptions o = options_;
  o.name = name;
  o.go_backwards = go_backwards;
  return Layer(std::make_shared<RNNImpl>(class_name(), cell_->copy(), o));
}

}  // namespace internal

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
  return std::make_shared<internal::RNNImpl>(
      class_name, cell,
      RNNOptions{.return_sequences = o.return_sequences,
                 .return_state = o.return_state,
                 .go_backwards = o.go_backwards,
                 .unroll = o.unroll,
                 .activity_regularizer = o.activity_regularizer,
                 .name = o.name,
                 .trainable = o.trainable,
                 .dtype = o.dtype});
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
