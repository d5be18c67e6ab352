// Recurrent cells and sequences in one op, as older graphs have them. Called by name (raw_op,
// imported graphs).

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/flops.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;

std::int64_t dim_or_unknown(const PartialShape& shape, int axis) {
  return shape.has_rank() ? shape.dim(axis) : kUnknown;
}

void lstm_cell_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  const PartialShape state({dim_or_unknown(c.input(0), 0), dim_or_unknown(c.input(1), 1)});
  for (int i = 0; i < 7; ++i) c.set_output(i, state);
}

void lstm_cell_grad_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  const std::int64_t batch = dim_or_unknown(c.input(0), 0);
  const std::int64_t cells = dim_or_unknown(c.input(1), 1);
  c.set_output(0, PartialShape({batch, cells}));
  c.set_output(1, PartialShape({batch, internal::multiply_sizes(cells, 4)}));
  for (int i = 2; i < 5; ++i) c.set_output(i, c.input(i + 2));
}

void sequence_shape(InferenceContext& c) {
  c.require_rank(0, 0);
  c.require_rank(1, 3);
  c.require_rank(2, 2);
  const PartialShape states({dim_or_unknown(c.input(1), 0), dim_or_unknown(c.input(1), 1),
                             dim_or_unknown(c.input(2), 1)});
  for (int i = 0; i < 7; ++i) c.set_output(i, states);
}

void sequence_grad_shape(InferenceContext& c) {
  for (int i = 0; i < 8; ++i) c.set_output(i, c.input(i + 1));
}

// TensorFlow calls BlockLSTMGrad for BlockLSTMV2 too, where the gates have another order.
void sequence_grad(GradientContext& g) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  for (int i = 0; i < g.num_outputs(); ++i) inputs.push_back(g.output(i));
  inputs.push_back(g.grad(1));
  inputs.push_back(g.grad(6));
  const bool second = g.op().name == "BlockLSTMV2";
  const auto gradients = raw_op(second ? "BlockLSTMGradV2" : "BlockLSTMGrad", inputs,
                                {{"use_peephole", g.attr<bool>("use_peephole")}});
  for (int i = 1; i < g.num_inputs(); ++i) {
    if (g.needs(i)) g.set(i, gradients[static_cast<std::size_t>(i - 1)]);
  }
}

void gru_cell_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  const PartialShape state({dim_or_unknown(c.input(0), 0), dim_or_unknown(c.input(1), 1)});
  for (int i = 0; i < 4; ++i) c.set_output(i, state);
}

void gru_cell_grad_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 2);
  const std::int64_t batch = dim_or_unknown(c.input(0), 0);
  const std::int64_t cells = dim_or_unknown(c.input(1), 1);
  c.set_output(0, c.input(0));
  c.set_output(1, PartialShape({batch, cells}));
  c.set_output(2, PartialShape({batch, cells}));
  c.set_output(3, PartialShape({batch, internal::multiply_sizes(cells, 2)}));
}

#define TANDEM_LSTM_INPUTS "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T"
#define TANDEM_LSTM_STATE "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T"
#define TANDEM_LSTM_TYPES "; T: {half, float}"

const OpRegistration kCell{
    {.name = "LSTMBlockCell",
     .inputs = TANDEM_LSTM_INPUTS,
     .outputs = TANDEM_LSTM_STATE,
     .attrs = "forget_bias: float = 1.0; cell_clip: float = 3.0; use_peephole: bool = "
              "false" TANDEM_LSTM_TYPES,
     .shape = lstm_cell_shape,
     .flops = flops::recurrent<0, 3, 1, 2>,
     .doc = "One step of an LSTM: gates after activation, cell state and output. The gates in w "
            "and b are input, cell, forget, output."}};
const OpRegistration kCellGrad{
    {.name = "LSTMBlockCellGrad",
     .inputs = TANDEM_LSTM_INPUTS ", i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T",
     .outputs = "cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
     .attrs = "use_peephole: bool" TANDEM_LSTM_TYPES,
     .shape = lstm_cell_grad_shape,
     .flops = flops::per_input<30, 1>,
     .doc = "The gradients of LSTMBlockCell's gates and cell state."}};
const OpRegistration kSequence{
    {.name = "BlockLSTM",
     .inputs = "seq_len_max: int64, " TANDEM_LSTM_INPUTS,
     .outputs = TANDEM_LSTM_STATE,
     .attrs = "forget_bias: float = 1.0; cell_clip: float = 3.0; use_peephole: bool = "
              "false" TANDEM_LSTM_TYPES,
     .shape = sequence_shape,
     .gradient = sequence_grad,
     .traits = {.host_inputs = 1},
     .flops = flops::recurrent<1, 4, 1, 2>,
     .doc = "LSTMBlockCell for each of seq_len_max steps; zeros after them."}};
const OpRegistration kSequenceV2{
    {.name = "BlockLSTMV2",
     .inputs = "seq_len_max: int64, " TANDEM_LSTM_INPUTS,
     .outputs = TANDEM_LSTM_STATE,
     .attrs = "cell_clip: float = 0.0; use_peephole: bool = false" TANDEM_LSTM_TYPES,
     .shape = sequence_shape,
     .gradient = sequence_grad,
     .traits = {.host_inputs = 1},
     .flops = flops::recurrent<1, 4, 1, 2>,
     .doc = "BlockLSTM with the gates in the order input, forget, cell, output."}};

OpDecl sequence_gradient(const char* name, const char* doc) {
  return {.name = name,
          .inputs = "seq_len_max: int64, " TANDEM_LSTM_INPUTS ", " TANDEM_LSTM_STATE
                    ", cs_grad: T, h_grad: T",
          .outputs =
              "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, "
              "wcf_grad: T, wco_grad: T, b_grad: T",
          .attrs = "use_peephole: bool" TANDEM_LSTM_TYPES,
          .shape = sequence_grad_shape,
          .traits = {.host_inputs = 1},
          .flops = flops::recurrent<1, 4, 1, 4>,
          .doc = doc};
}
const OpRegistration kSequenceGrad(sequence_gradient("BlockLSTMGrad", "BlockLSTM's gradients."));
const OpRegistration kSequenceGradV2(sequence_gradient("BlockLSTMGradV2",
                                                       "BlockLSTMV2's gradients."));

#define TANDEM_GRU_INPUTS "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T"

const OpRegistration kGru{{.name = "GRUBlockCell",
                           .inputs = TANDEM_GRU_INPUTS,
                           .outputs = "r: T, u: T, c: T, h: T",
                           .attrs = "T: {float}",
                           .shape = gru_cell_shape,
                           .flops = flops::recurrent<0, 2, 2, 2>,
                           .doc = "One step of a GRU: reset and update gates, candidate, output."}};
const OpRegistration kGruGrad{{.name = "GRUBlockCellGrad",
                               .inputs = TANDEM_GRU_INPUTS ", r: T, u: T, c: T, d_h: T",
                               .outputs = "d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
                               .attrs = "T: {float}",
                               .shape = gru_cell_grad_shape,
                               .flops = flops::recurrent<0, 2, 2, 2>,
                               .doc = "The gradients of GRUBlockCell's inputs and gates."}};

}  // namespace
}  // namespace tandem
