// _LstmGates, _GruGates: the elementwise ends of recurrent steps.

#include "tandem/kernels/cuda/support/broadcast.h"
#include "tandem/kernels/cuda/support/launch.h"

namespace tandem::cuda {
namespace {

TANDEM_DEVICE float sigmoid(float x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

// A row of an input that is 0 elements further on is the same for all.
TANDEM_KERNEL lstm_gates_kernel(const float* gates, const float* cell, float* new_cell,
                                float* output, std::int64_t count, std::int64_t n,
                                std::int64_t gates_row, std::int64_t cell_row) {
  for (auto i = first_index<std::int64_t>(); i < count; i += index_step<std::int64_t>()) {
    const std::int64_t row = i / n, column = i % n;
    const float* g = gates + row * gates_row + column;
    const float next =
        sigmoid(g[n]) * cell[row * cell_row + column] + sigmoid(g[0]) * std::tanh(g[2 * n]);
    new_cell[i] = next;
    output[i] = sigmoid(g[3 * n]) * std::tanh(next);
  }
}

TANDEM_KERNEL gru_gates_kernel(const float* x, const float* h, const float* state, float* out,
                               std::int64_t count, std::int64_t n, std::int64_t x_row,
                               std::int64_t h_row, std::int64_t state_row) {
  for (auto i = first_index<std::int64_t>(); i < count; i += index_step<std::int64_t>()) {
    const std::int64_t row = i / n, column = i % n;
    const float* a = x + row * x_row + column;
    const float* b = h + row * h_row + column;
    const float z = sigmoid(a[0] + b[0]), r = sigmoid(a[n] + b[n]);
    out[i] = z * state[row * state_row + column] + (1 - z) * std::tanh(a[2 * n] + r * b[2 * n]);
  }
}

std::int64_t row_of(const TensorView& t) { return t.sizes[0] == 1 ? 0 : t.sizes[1]; }

}  // namespace

void recurrent_lstm_gates(KernelCall& call) {
  const TensorView gates = call.input(0), cell = call.input(1);
  if (gates.rank() != 2 || gates.sizes[1] % 4 != 0)
    refuse("The gates must be a matrix of four groups of columns");
  const std::int64_t n = gates.sizes[1] / 4;
  if (cell.rank() != 2 || cell.sizes[1] != n) refuse("Incompatible shapes: gates and cell");
  const Sizes sizes = broadcast_sizes({gates.sizes[0], n}, cell.sizes);
  const TensorView next = call.allocate_output(0, sizes), out = call.allocate_output(1, sizes);
  if (out.count == 0) return;
  TANDEM_LAUNCH(lstm_gates_kernel, shape_for(out.count), 0, gates.as<float>(), cell.as<float>(),
                next.as<float>(), out.as<float>(), out.count, n, row_of(gates), row_of(cell));
}

void recurrent_gru_gates(KernelCall& call) {
  const TensorView x = call.input(0), h = call.input(1), state = call.input(2);
  if (x.rank() != 2 || h.rank() != 2 || x.sizes[1] != h.sizes[1] || x.sizes[1] % 3 != 0)
    refuse("The gates must be two matrices of three groups of columns");
  const std::int64_t n = x.sizes[1] / 3;
  if (state.rank() != 2 || state.sizes[1] != n) refuse("Incompatible shapes: gates and state");
  const Sizes sizes =
      broadcast_sizes(broadcast_sizes({x.sizes[0], n}, {h.sizes[0], n}), state.sizes);
  const TensorView out = call.allocate_output(0, sizes);
  if (out.count == 0) return;
  TANDEM_LAUNCH(gru_gates_kernel, shape_for(out.count), 0, x.as<float>(), h.as<float>(),
                state.as<float>(), out.as<float>(), out.count, n, row_of(x), row_of(h),
                row_of(state));
}

}  // namespace tandem::cuda
