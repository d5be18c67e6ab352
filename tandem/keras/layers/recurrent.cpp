#include "tandem/keras/layers/recurrent.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/rnn_impl.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/keras/layers/recurrent_cells.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/gather_ops.h"
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
    throw InvalidArgumentError(cat(class_name,
                                   ": the cell must be a layer such as LSTMCell, or of "
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
  Tensor mask;             ///< [steps, batch, 1] in the order of the steps taken, or undefined
  std::int64_t num_steps;  ///< -1: not known
  std::vector<Tensor> constants;
};

namespace {

// Zeros [batch, size]; the batch is an axis of x.
Tensor zeros_with_batch(const Tensor& x, int axis, std::int64_t size, DType dtype) {
  if (x.dim(axis) >= 0) return zeros({x.dim(axis), size}, dtype);
  const Tensor batch = slice(shape(x), IntList{axis}, {1});
  return zeros(IntList(concat({batch, IntList{size}.tensor(int32)}, 0)), dtype);
}

Tensor time_first(const Tensor& x) {
  std::vector<std::int64_t> order{1, 0};
  for (int i = 2; i < x.rank(); ++i) order.push_back(i);
  return transpose(x, order);
}

}  // namespace

Tensor RNNImpl::zeros_of(const Tensor& time_first, std::int64_t size) const {
  return zeros_with_batch(time_first, 1, size, dtype());
}

Tensor RNNImpl::checked_mask(const Tensor& mask, const Tensor& sequence) const {
  if (!mask.defined()) return {};
  const PartialShape wanted(std::vector<std::int64_t>{sequence.dim(0), sequence.dim(1)});
  if (!wanted.is_compatible(mask.partial_shape())) {
    throw InvalidArgumentError(cat(prefix(),
                                   "the mask must be [batch, steps] = ", shape_text(wanted),
                                   ", but has shape ", shape_text(mask.partial_shape()), "."));
  }
  return expand_dims(transpose(cast(mask, DType::kBool), {1, 0}), -1);
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
  if (states.empty()) {
    for (const std::int64_t size : cell_->state_sizes())
      states.push_back(zeros_with_batch(sequence, 0, size, dtype()));
  }
  const bool training = how.is_training();
  Loop loop{time_first(cell_->project(sequence, training)), checked_mask(how.mask_of(0), sequence),
            sequence.dim(1), cell_->constants(sequence, training)};
  if (loop.num_steps == 0) {
    throw InvalidArgumentError(cat(prefix(), "the sequences have no steps."));
  }
  if (options_.go_backwards && loop.mask.defined()) loop.mask = reverse(loop.mask, {0});
  const Tensor output = options_.unroll ? unrolled(loop, states) : looped(loop, states);
  if (options_.activity_regularizer.defined()) {
    add_loss(activity_penalty(options_.activity_regularizer, output));
  }
  std::vector<Tensor> results{output};
  if (options_.return_state) results.insert(results.end(), states.begin(), states.end());
  return results;
}

// What stays as it was where the mask says so: Keras skips masked steps example by example.
void RNNImpl::keep_masked(const Tensor& mask, const Tensor& before, std::vector<Tensor>& next,
                          std::span<const Tensor> states) const {
  if (!mask.defined()) return;
  next[0] = where(mask, next[0], before);
  for (std::size_t i = 0; i < states.size(); ++i) next[i + 1] = where(mask, next[i + 1], states[i]);
}

Tensor RNNImpl::unrolled(const Loop& loop, std::vector<Tensor>& states) const {
  if (loop.num_steps < 0) {
    throw InvalidArgumentError(cat(prefix(), "cannot unroll a RNN if the time dimension is not ",
                                   "known. Give it in Input, or leave `unroll` out."));
  }
  std::vector<Tensor> steps = unstack(loop.inputs, loop.num_steps);
  if (options_.go_backwards) std::reverse(steps.begin(), steps.end());
  std::vector<Tensor> masks(steps.size());
  if (loop.mask.defined()) masks = unstack(loop.mask, loop.num_steps);
  std::vector<Tensor> outputs;
  Tensor before;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<Tensor> next = cell_->step(steps[i], states, loop.constants);
    if (masks[i].defined() && (!before.defined() || options_.zero_output_for_mask)) {
      before = zeros_like(next[0]);
    }
    keep_masked(masks[i], before, next, states);
    before = next[0];
    outputs.push_back(next[0]);
    states.assign(next.begin() + 1, next.end());
  }
  return options_.return_sequences ? stack(outputs, 1) : outputs.back();
}

Tensor RNNImpl::looped(const Loop& loop, std::vector<Tensor>& states) const {
  const Tensor steps = loop.num_steps >= 0 ? Tensor(static_cast<int>(loop.num_steps))
                                           : index(shape(loop.inputs), {0});
  const std::vector<std::int64_t> sizes = loop.inputs.partial_shape().dims();
  const PartialShape step_shape(std::vector<std::int64_t>(sizes.begin() + 1, sizes.end()));
  const DType input_dtype = loop.inputs.dtype();
  const bool all = options_.return_sequences;
  const bool keeps_output = !all || (loop.mask.defined() && !options_.zero_output_for_mask);

  // What goes round: the number of the step, the inputs still to come (a list with the next one at
  // its end), the outputs so far, the last output, and the states.
  const std::int64_t size = cell_->output_size();
  const PartialShape output_shape(std::vector<std::int64_t>{loop.inputs.dim(1), size});
  const Tensor last_first = options_.go_backwards ? loop.inputs : reverse(loop.inputs, {0});
  std::vector<Tensor> round{Tensor(0), list_ops::from_tensor(last_first)};
  if (all) round.push_back(list_ops::empty_tensor_list(dtype(), output_shape));
  if (keeps_output) round.push_back(zeros_of(loop.inputs, size));
  const std::size_t first = round.size();
  round.insert(round.end(), states.begin(), states.end());
  round = while_loop([&](const std::vector<Tensor>& v) { return v[0] < steps; },
                     [&](const std::vector<Tensor>& v) {
                       auto [rest, x] = list_ops::pop_back(v[1], input_dtype, step_shape);
                       const auto before = std::span<const Tensor>(v).subspan(first);
                       std::vector<Tensor> next = cell_->step(x, before, loop.constants);
                       if (loop.mask.defined()) {
                         const Tensor skipped =
                             options_.zero_output_for_mask ? zeros_like(next[0]) : v[first - 1];
                         keep_masked(gather(loop.mask, v[0]), skipped, next, before);
                       }
                       std::vector<Tensor> now{v[0] + 1, rest};
                       if (all) now.push_back(list_ops::push_back(v[2], next[0]));
                       if (keeps_output) now.push_back(next[0]);
                       now.insert(now.end(), next.begin() + 1, next.end());
                       return now;
                     },
                     round);
  states.assign(round.begin() + static_cast<std::ptrdiff_t>(first), round.end());
  if (!all) return round[first - 1];
  const Tensor outputs = transpose(list_ops::stack(round[2], dtype(), output_shape), {1, 0, 2});
  // The list does not know its length while tracing; we may.
  if (loop.num_steps < 0 || outputs.partial_shape().is_fully_known()) return outputs;
  return reshape(outputs, {loop.inputs.dim(1), loop.num_steps, size});
}

std::vector<Tensor> RNNImpl::compute_masks(std::span<const Tensor>,
                                           std::span<const Tensor> masks) const {
  if (masks.empty() || !options_.return_sequences) return {};
  return {masks[0]};
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
                 .zero_output_for_mask = o.zero_output_for_mask,
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
