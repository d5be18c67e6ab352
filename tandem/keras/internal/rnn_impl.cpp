#include "tandem/keras/internal/rnn_impl.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/keras/internal/checks.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/autocast.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/list_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras::internal {

// The inputs of all steps, and what the steps share.
struct RNNImpl::Loop {
  RNNCellImpl& cell;
  Tensor inputs;           ///< as `project` gave them, [steps, batch, ...]
  Tensor mask;             ///< [steps, batch] in the order of the steps taken, or undefined
  std::int64_t num_steps;  ///< -1: not known
  std::vector<Tensor> constants;
  bool backwards;  ///< from the last step to the first
  bool all;        ///< the outputs of all steps are wanted
};

namespace {

std::vector<std::int64_t> sizes_after(std::initializer_list<std::int64_t> first,
                                      const Shape& rest) {
  std::vector<std::int64_t> sizes(first);
  for (int i = 0; i < rest.rank(); ++i) sizes.push_back(rest.dim(i));
  return sizes;
}

// Zeros [batch, rest...]; the batch is an axis of x.
Tensor zeros_with_batch(const Tensor& x, int axis, const Shape& rest, DType dtype) {
  if (x.dim(axis) >= 0) return zeros(sizes_after({x.dim(axis)}, rest), dtype);
  std::vector<Tensor> sizes{index(shape(x), {axis})};
  for (int i = 0; i < rest.rank(); ++i) sizes.emplace_back(static_cast<int>(rest.dim(i)));
  return zeros(IntList(stack(sizes)), dtype);
}

// [batch, steps, ...] as [steps, batch, ...], and back.
Tensor swap_steps(const Tensor& x) {
  std::vector<std::int64_t> order{1, 0};
  for (int i = 2; i < x.rank(); ++i) order.push_back(i);
  return transpose(x, order);
}

// `now` where the mask [batch] says so, else `before`.
Tensor kept(const Tensor& mask, const Tensor& now, const Tensor& before) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(now.rank()), 1);
  sizes[0] = -1;
  return where(reshape(mask, sizes), now, before);
}

// Masked steps change nothing, example by example.
void keep_masked(const Tensor& mask, const Tensor& before, std::vector<Tensor>& next,
                 std::span<const Tensor> states) {
  next[0] = kept(mask, next[0], before);
  for (std::size_t i = 0; i < states.size(); ++i) next[i + 1] = kept(mask, next[i + 1], states[i]);
}

}  // namespace

RNNImpl::RNNImpl(const std::string& class_name, const Layer& cell, const RNNOptions& o)
    : LayerImpl(class_name, {.name = o.name, .trainable = o.trainable, .dtype = o.dtype}),
      cell_layer_(cell),
      cell_(std::dynamic_pointer_cast<RNNCellImpl>(cell.impl())),
      options_(o) {
  if (!cell_) {
    throw InvalidArgumentError(cat(class_name,
                                   ": the cell must be a layer such as LSTMCell, or of a class "
                                   "derived from RNNCellImpl. Received: ",
                                   cell.describe(), "."));
  }
  cells_ = {cell_};
  if (const auto stack = std::dynamic_pointer_cast<StackedCellsImpl>(cell_)) {
    cells_ = stack->cells();
  }
  add_layer(cell, "cell");
}

// Other cells, ConvLSTM's and those of one's own, may take more than vectors.
bool RNNImpl::takes_rank(int rank) const {
  const std::string& cell = cells_.front()->class_name();
  const bool of_vectors = cell == "LSTMCell" || cell == "GRUCell" || cell == "SimpleRNNCell";
  return of_vectors ? rank == 3 : rank >= 3;
}

void RNNImpl::build_many(const std::vector<PartialShape>& inputs) {
  const PartialShape& sequence = inputs.at(0);
  if (!takes_rank(sequence.rank())) {
    throw InvalidArgumentError(cat(prefix(), "expects sequences [batch, steps, features], ",
                                   "but the input has shape ", shape_text(sequence), "."));
  }
  std::vector<std::int64_t> sizes = sequence.dims();
  sizes.erase(sizes.begin() + 1);
  build_sublayer(cell_layer_, {PartialShape(sizes)});
}

void RNNImpl::require_inputs(std::span<const Tensor> inputs) const {
  const Tensor& sequence = inputs[0];
  if (!takes_rank(sequence.rank()) || (inputs.size() != 1 && inputs.size() != 1 + num_states())) {
    throw InvalidArgumentError(cat(prefix(), "takes sequences [batch, steps, features] and none ",
                                   "or all of its ", num_states(), " first state(s). Received ",
                                   inputs.size(), " tensor(s), the first of shape ",
                                   shape_text(sequence.partial_shape()), "."));
  }
  const std::vector<Shape> shapes = cell_->state_shapes();
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const std::vector<std::int64_t> wanted = sizes_after({sequence.dim(0)}, shapes[i - 1]);
    if (PartialShape(wanted).is_compatible(inputs[i].partial_shape())) continue;
    throw InvalidArgumentError(cat(prefix(), "first state ", i, " must be ",
                                   shape_text(PartialShape(wanted)), ", but has shape ",
                                   shape_text(inputs[i].partial_shape()), "."));
  }
  if (sequence.dim(1) == 0) {
    throw InvalidArgumentError(cat(prefix(), "the sequences have no steps."));
  }
  if (options_.unroll && sequence.dim(1) < 0) {
    throw InvalidArgumentError(cat(prefix(), "cannot unroll a RNN if the time dimension is not ",
                                   "known. Give it in Input, or leave `unroll` out."));
  }
}

Tensor RNNImpl::checked_mask(const Tensor& mask, const Tensor& sequence) const {
  if (!mask.defined()) return {};
  const PartialShape wanted(std::vector<std::int64_t>{sequence.dim(0), sequence.dim(1)});
  if (!wanted.is_compatible(mask.partial_shape())) {
    throw InvalidArgumentError(cat(prefix(),
                                   "the mask must be [batch, steps] = ", shape_text(wanted),
                                   ", but has shape ", shape_text(mask.partial_shape()), "."));
  }
  const Tensor steps_first = transpose(cast(mask, DType::kBool), {1, 0});
  return options_.go_backwards ? reverse(steps_first, {0}) : steps_first;
}

std::vector<Tensor> RNNImpl::call_many(std::span<const Tensor> inputs, const CallOptions& how) {
  require_inputs(inputs);
  const Tensor mask = checked_mask(how.mask_of(0), inputs[0]);
  std::vector<Tensor> states(inputs.begin() + 1, inputs.end());
  if (states.empty()) {
    for (const Shape& sizes : cell_->state_shapes())
      states.push_back(zeros_with_batch(inputs[0], 0, sizes, compute_dtype()));
  }
  Tensor output = inputs[0];
  std::vector<Tensor> last_states;
  auto first = states.begin();
  for (const auto& cell : cells_) {
    const auto after = first + static_cast<std::ptrdiff_t>(cell->state_sizes().size());
    std::vector<Tensor> mine(first, after);
    first = after;
    // A cell computes in its own dtype, as if it were called.
    const DType inner = cell->compute_dtype();
    const AutocastScope autocast(inner);
    if (output.dtype() != inner) output = cast(output, inner);
    for (Tensor& state : mine) {
      if (state.dtype() != inner) state = cast(state, inner);
    }
    const Loop loop{*cell,
                    swap_steps(cell->project(output, how.is_training())),
                    mask,
                    inputs[0].dim(1),
                    cell->constants(output, how.is_training()),
                    options_.go_backwards && cell == cells_.front(),
                    options_.return_sequences || cell != cells_.back()};
    output = options_.unroll ? unrolled(loop, mine) : looped(loop, mine);
    last_states.insert(last_states.end(), mine.begin(), mine.end());
  }
  if (options_.activity_regularizer.defined()) {
    add_loss(activity_penalty(options_.activity_regularizer, output));
  }
  std::vector<Tensor> results{output};
  if (options_.return_state) results.insert(results.end(), last_states.begin(), last_states.end());
  return results;
}

Tensor RNNImpl::unrolled(const Loop& loop, std::vector<Tensor>& states) const {
  std::vector<Tensor> steps = unstack(loop.inputs, loop.num_steps);
  if (loop.backwards) std::reverse(steps.begin(), steps.end());
  std::vector<Tensor> masks;
  if (loop.mask.defined()) masks = unstack(loop.mask, loop.num_steps);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<Tensor> next = loop.cell.step(steps[i], states, loop.constants);
    if (loop.mask.defined()) {
      const bool zero = outputs.empty() || options_.zero_output_for_mask;
      keep_masked(masks[i], zero ? zeros_like(next[0]) : outputs.back(), next, states);
    }
    outputs.push_back(next[0]);
    states.assign(next.begin() + 1, next.end());
  }
  return loop.all ? stack(outputs, 1) : outputs.back();
}

Tensor RNNImpl::looped(const Loop& loop, std::vector<Tensor>& states) const {
  const Tensor steps = loop.num_steps >= 0 ? Tensor(static_cast<int>(loop.num_steps))
                                           : index(shape(loop.inputs), {0});
  const std::vector<std::int64_t> sizes = loop.inputs.partial_shape().dims();
  const PartialShape step_shape(std::vector<std::int64_t>(sizes.begin() + 1, sizes.end()));
  const DType input_dtype = loop.inputs.dtype();
  const bool keeps_output = !loop.all || (loop.mask.defined() && !options_.zero_output_for_mask);

  // The loop's state: the number of the step, the inputs still to come (a list with the next one at
  // its end), the outputs so far, the last output, and the states.
  const Shape one = loop.cell.output_shape();
  const PartialShape output_shape(sizes_after({sizes[1]}, one));
  const Tensor last_first = loop.backwards ? loop.inputs : reverse(loop.inputs, {0});
  std::vector<Tensor> round{Tensor(0), list_ops::from_tensor(last_first)};
  if (loop.all)
    round.push_back(list_ops::empty_tensor_list(loop.cell.compute_dtype(), output_shape));
  if (keeps_output)
    round.push_back(zeros_with_batch(loop.inputs, 1, one, loop.cell.compute_dtype()));
  const std::size_t first = round.size();
  round.insert(round.end(), states.begin(), states.end());
  round = while_loop([&](const std::vector<Tensor>& v) { return v[0] < steps; },
                     [&](const std::vector<Tensor>& v) {
                       auto [rest, x] = list_ops::pop_back(v[1], input_dtype, step_shape);
                       const auto before = std::span<const Tensor>(v).subspan(first);
                       std::vector<Tensor> next = loop.cell.step(x, before, loop.constants);
                       if (loop.mask.defined()) {
                         const Tensor skipped =
                             options_.zero_output_for_mask ? zeros_like(next[0]) : v[first - 1];
                         keep_masked(gather(loop.mask, v[0]), skipped, next, before);
                       }
                       std::vector<Tensor> now{v[0] + 1, rest};
                       if (loop.all) now.push_back(list_ops::push_back(v[2], next[0]));
                       if (keeps_output) now.push_back(next[0]);
                       now.insert(now.end(), next.begin() + 1, next.end());
                       return now;
                     },
                     round);
  states.assign(round.begin() + static_cast<std::ptrdiff_t>(first), round.end());
  if (!loop.all) return round[first - 1];
  const Tensor outputs =
      swap_steps(list_ops::stack(round[2], loop.cell.compute_dtype(), output_shape));
  // The list does not know its length while tracing; we may.
  if (loop.num_steps < 0 || outputs.partial_shape().is_fully_known()) return outputs;
  return reshape(outputs, sizes_after({sizes[1], loop.num_steps}, one));
}

std::vector<Tensor> RNNImpl::compute_masks(std::span<const Tensor>,
                                           std::span<const Tensor> masks) const {
  if (masks.empty() || !options_.return_sequences) return {};
  return {masks[0]};
}

Layer RNNImpl::copy(const RNNOptions& options) const {
  return Layer(std::make_shared<RNNImpl>(class_name(), cell_->copy(), options));
}

}  // namespace tandem::keras::internal
