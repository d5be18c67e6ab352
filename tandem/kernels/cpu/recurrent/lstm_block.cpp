// LSTM cells and whole sequences in one op, and their gradients (TensorFlow's contrib ops).

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/recurrent/rnn_block.h"

namespace tandem::cpu {
namespace {

// Order of the gates in w and b: input, cell, forget, output, or input, forget, cell, output.
enum class Gates { kIcfo, kIfco };

struct Cell {
  std::int64_t time = 1, batch = 0, inputs = 0, cells = 0;
  bool peephole = false;
  float forget_bias = 0, clip = 0;
  Gates gates = Gates::kIcfo;

  std::int64_t state() const { return batch * cells; }
  std::int64_t cell_gate() const { return gates == Gates::kIcfo ? cells : 2 * cells; }
  std::int64_t forget_gate() const { return gates == Gates::kIcfo ? 2 * cells : cells; }
};

// Checks the inputs x, cs_prev, h_prev, w, wci, wcf, wco and b, which begin at `first`.
Cell check(const KernelContext& c, int first, bool sequence) {
  require_input_rank(c, first, sequence ? 3 : 2);
  require_input_rank(c, first + 1, 2);
  const Shape& x = c.input(first).shape();
  Cell cell;
  if (sequence) cell.time = x[0];
  cell.batch = x[x.rank() - 2];
  cell.inputs = x[x.rank() - 1];
  cell.cells = c.input(first + 1).shape()[1];
  cell.peephole = c.attr<bool>("use_peephole");
  require_shape(c, first + 1, {cell.batch, cell.cells});
  require_shape(c, first + 2, {cell.batch, cell.cells});
  require_shape(c, first + 3, {cell.inputs + cell.cells, 4 * cell.cells});
  for (int i = first + 4; cell.peephole && i < first + 7; ++i) require_shape(c, i, {cell.cells});
  require_shape(c, first + 7, {4 * cell.cells});
  return cell;
}

struct Weights {
  const float *w, *wci, *wcf, *wco, *b;
};
// The state of one step: gates after their activations, cell state and output.
template <class Float>
struct Step {
  Float *i, *cs, *f, *o, *ci, *co, *h;
  Step at(std::int64_t offset) const {
    return {i + offset, cs + offset, f + offset, o + offset, ci + offset, co + offset, h + offset};
  }
};
template <class Float>
Step(Float*, Float*, Float*, Float*, Float*, Float*, Float*) -> Step<Float>;

void forward(KernelContext& c, const Cell& cell, const Weights& weights, const float* x,
             const float* cs_prev, const float* h_prev, const Step<float>& to,
             std::vector<float>& joined, std::vector<float>& gates) {
  join_columns(x, h_prev, cell.batch, cell.inputs, cell.cells, joined.data());
  multiply(c, {.m = cell.batch, .n = 4 * cell.cells, .k = cell.inputs + cell.cells}, joined.data(),
           weights.w, gates.data());
  for (std::int64_t r = 0; r < cell.batch; ++r) {
    const float* row = gates.data() + r * 4 * cell.cells;
    for (std::int64_t u = 0; u < cell.cells; ++u) {
      const std::int64_t k = r * cell.cells + u;
      const auto gate = [&](std::int64_t first) { return row[first + u] + weights.b[first + u]; };
      float i = gate(0), f = gate(cell.forget_gate()) + cell.forget_bias;
      float o = gate(3 * cell.cells);
      if (cell.peephole) {
        i += cs_prev[k] * weights.wci[u];
        f += cs_prev[k] * weights.wcf[u];
      }
      to.i[k] = sigmoid_of(i);
      to.f[k] = sigmoid_of(f);
      to.ci[k] = std::tanh(gate(cell.cell_gate()));
      float cs = to.i[k] * to.ci[k] + to.f[k] * cs_prev[k];
      if (cell.clip > 0) cs = std::clamp(cs, -cell.clip, cell.clip);
      to.cs[k] = cs;
      to.co[k] = std::tanh(cs);
      if (cell.peephole) o += cs * weights.wco[u];
      to.o[k] = sigmoid_of(o);
      to.h[k] = to.o[k] * to.co[k];
    }
  }
}

void forward_all(KernelContext& c, const Cell& cell, int first, std::int64_t steps,
                 const Shape& shape) {
  const FloatInput x(c, first), cs_prev(c, first + 1), h_prev(c, first + 2), w(c, first + 3),
      wci(c, first + 4), wcf(c, first + 5), wco(c, first + 6), b(c, first + 7);
  const FloatOutput i(c, 0, shape), cs(c, 1, shape), f(c, 2, shape), o(c, 3, shape),
      ci(c, 4, shape), co(c, 5, shape), h(c, 6, shape);
  const Weights weights{w, wci, wcf, wco, b};
  const Step<float> all{i, cs, f, o, ci, co, h};
  std::vector<float> joined(static_cast<std::size_t>(cell.batch * (cell.inputs + cell.cells)));
  std::vector<float> gates(static_cast<std::size_t>(4 * cell.state()));
  for (std::int64_t t = 0; t < steps; ++t) {
    const Step<float> now = all.at(t * cell.state());
    forward(c, cell, weights, x + t * cell.batch * cell.inputs,
            t == 0 ? cs_prev : now.cs - cell.state(), t == 0 ? h_prev : now.h - cell.state(), now,
            joined, gates);
  }
}

void lstm_cell(KernelContext& c) {
  Cell cell = check(c, 0, false);
  cell.forget_bias = c.attr<float>("forget_bias");
  cell.clip = c.attr<float>("cell_clip");
  forward_all(c, cell, 0, 1, {cell.batch, cell.cells});
}

std::int64_t steps_input(const KernelContext& c, const Cell& cell) {
  const std::int64_t steps = scalar_int_input(c, 0, "seq_len_max");
  if (steps < 0 || steps > cell.time) {
    throw InvalidArgumentError(cat("seq_len_max must be in [0, ", cell.time, "], but is ", steps));
  }
  return steps;
}

template <Gates kGates>
void lstm_sequence(KernelContext& c) {
  Cell cell = check(c, 1, true);
  cell.gates = kGates;
  cell.clip = c.attr<float>("cell_clip");
  if (kGates == Gates::kIcfo) cell.forget_bias = c.attr<float>("forget_bias");
  forward_all(c, cell, 1, steps_input(c, cell), {cell.time, cell.batch, cell.cells});
}

// ---- Gradients ----

struct PeepholeGradients {
  float *wci, *wcf, *wco;
};

// Gradients of the gates before their activations, as columns of `gates`, and of the cell state
// before; h_grad and cs_grad are those of the step's results.
void backward(const Cell& cell, const Weights& weights, const float* cs_prev,
              const Step<const float>& at, const float* cs_grad, const float* h_grad, float* gates,
              float* cs_prev_grad, const PeepholeGradients& peephole) {
  for (std::int64_t r = 0; r < cell.batch; ++r) {
    float* row = gates + r * 4 * cell.cells;
    for (std::int64_t u = 0; u < cell.cells; ++u) {
      const std::int64_t k = r * cell.cells + u;
      const float i = at.i[k], f = at.f[k], o = at.o[k], ci = at.ci[k], co = at.co[k];
      const float d_o = o * (1 - o) * h_grad[k] * co;
      float d_cs = (1 - co * co) * h_grad[k] * o + cs_grad[k];
      if (cell.peephole) d_cs += d_o * weights.wco[u];
      const float d_ci = (1 - ci * ci) * d_cs * i;
      const float d_f = f * (1 - f) * d_cs * cs_prev[k];
      const float d_i = i * (1 - i) * d_cs * ci;
      row[u] = d_i;
      row[cell.cell_gate() + u] = d_ci;
      row[cell.forget_gate() + u] = d_f;
      row[3 * cell.cells + u] = d_o;
      float before = d_cs * f;
      if (cell.peephole) {
        before += d_i * weights.wci[u] + d_f * weights.wcf[u];
        peephole.wci[u] += d_i * cs_prev[k];
        peephole.wcf[u] += d_f * cs_prev[k];
        peephole.wco[u] += d_o * at.cs[k];
      }
      cs_prev_grad[k] = before;
    }
  }
}

void require_steps(const KernelContext& c, int first, int end, const Shape& shape) {
  for (int i = first; i < end; ++i) require_shape(c, i, shape);
}

void lstm_cell_grad(KernelContext& c) {
  const Cell cell = check(c, 0, false);
  const Shape shape{cell.batch, cell.cells};
  require_steps(c, 8, 16, shape);
  // Without peepholes TensorFlow still gives their gradients the weights' shape: zeros.
  for (int i = 4; i < 7; ++i) require_input_rank(c, i, 1);
  const FloatInput cs_prev(c, 1), w(c, 3), wci(c, 4), wcf(c, 5), wco(c, 6), b(c, 7), i(c, 8),
      cs(c, 9), f(c, 10), o(c, 11), ci(c, 12), co(c, 13), cs_grad(c, 14), h_grad(c, 15);
  const FloatOutput cs_prev_grad(c, 0, shape), gates(c, 1, {cell.batch, 4 * cell.cells}),
      wci_grad(c, 2, c.input(4).shape()), wcf_grad(c, 3, c.input(5).shape()),
      wco_grad(c, 4, c.input(6).shape());
  backward(cell, {w, wci, wcf, wco, b}, cs_prev, {i, cs, f, o, ci, co, nullptr}, cs_grad, h_grad,
           gates, cs_prev_grad, {wci_grad, wcf_grad, wco_grad});
}

template <Gates kGates>
void lstm_sequence_grad(KernelContext& c) {
  Cell cell = check(c, 1, true);
  cell.gates = kGates;
  const std::int64_t steps = steps_input(c, cell);
  require_steps(c, 9, 18, {cell.time, cell.batch, cell.cells});
  for (int i = 5; i < 8; ++i) require_input_rank(c, i, 1);
  const FloatInput x(c, 1), cs_prev(c, 2), h_prev(c, 3), w(c, 4), wci(c, 5), wcf(c, 6), wco(c, 7),
      b(c, 8), i(c, 9), cs(c, 10), f(c, 11), o(c, 12), ci(c, 13), co(c, 14), h(c, 15),
      cs_grad(c, 16), h_grad(c, 17);
  const std::int64_t width = cell.inputs + cell.cells;
  const FloatOutput x_grad(c, 0, c.input(1).shape()), cs_prev_grad(c, 1, c.input(2).shape()),
      h_prev_grad(c, 2, c.input(3).shape()), w_grad(c, 3, c.input(4).shape()),
      wci_grad(c, 4, c.input(5).shape()), wcf_grad(c, 5, c.input(6).shape()),
      wco_grad(c, 6, c.input(7).shape()), b_grad(c, 7, c.input(8).shape());
  const auto scratch = [](std::int64_t n) {
    return std::vector<float>(static_cast<std::size_t>(n));
  };
  auto gates = scratch(4 * cell.state()), joined = scratch(cell.batch * width);
  auto joined_grad = scratch(cell.batch * width), step_w = scratch(width * 4 * cell.cells);
  auto to_cs = scratch(cell.state()), to_h = scratch(cell.state());
  const Step<const float> all{i, cs, f, o, ci, co, h};
  const std::int64_t x_step = cell.batch * cell.inputs;
  for (std::int64_t t = steps - 1; t >= 0; --t) {
    const std::int64_t from = t * cell.state();
    const Step<const float> now = all.at(from);
    for (std::int64_t k = 0; k < cell.state(); ++k) {
      const auto at = static_cast<std::size_t>(k);
      to_cs[at] = cs_prev_grad[k] + cs_grad[from + k];
      to_h[at] = h_prev_grad[k] + h_grad[from + k];
    }
    backward(cell, {w, wci, wcf, wco, b}, t == 0 ? cs_prev : now.cs - cell.state(), now,
             to_cs.data(), to_h.data(), gates.data(), cs_prev_grad, {wci_grad, wcf_grad, wco_grad});
    multiply(c, {.m = cell.batch, .n = width, .k = 4 * cell.cells, .transpose_b = true},
             gates.data(), w, joined_grad.data());
    split_columns(joined_grad.data(), cell.batch, cell.inputs, cell.cells, x_grad + t * x_step,
                  h_prev_grad);
    join_columns(x + t * x_step, t == 0 ? h_prev : now.h - cell.state(), cell.batch, cell.inputs,
                 cell.cells, joined.data());
    multiply(c, {.m = width, .n = 4 * cell.cells, .k = cell.batch, .transpose_a = true},
             joined.data(), gates.data(), step_w.data());
    for (std::size_t k = 0; k < step_w.size(); ++k) w_grad[k] += step_w[k];
    for (std::size_t k = 0; k < gates.size(); ++k) {
      b_grad[k % static_cast<std::size_t>(4 * cell.cells)] += gates[k];
    }
  }
}

constexpr TypeConstraint kTypes{"T", {DType::kHalf, DType::kFloat}};
const KernelRegistration kKernels[] = {
    KernelRegistration({.op = "LSTMBlockCell", .types = {kTypes}, .run = lstm_cell}),
    KernelRegistration({.op = "LSTMBlockCellGrad", .types = {kTypes}, .run = lstm_cell_grad}),
    KernelRegistration({.op = "BlockLSTM", .types = {kTypes}, .run = lstm_sequence<Gates::kIcfo>}),
    KernelRegistration(
        {.op = "BlockLSTMV2", .types = {kTypes}, .run = lstm_sequence<Gates::kIfco>}),
    KernelRegistration(
        {.op = "BlockLSTMGrad", .types = {kTypes}, .run = lstm_sequence_grad<Gates::kIcfo>}),
    KernelRegistration(
        {.op = "BlockLSTMGradV2", .types = {kTypes}, .run = lstm_sequence_grad<Gates::kIfco>}),
};

}  // namespace
}  // namespace tandem::cpu
