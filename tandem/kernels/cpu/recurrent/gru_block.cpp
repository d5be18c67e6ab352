// A GRU cell in one op, and its gradient (TensorFlow's contrib ops).

#include <cmath>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/recurrent/rnn_block.h"

namespace tandem::cpu {
namespace {

struct Cell {
  std::int64_t batch, inputs, cells;
  std::int64_t width() const { return inputs + cells; }
};

// Checks the inputs x, h_prev, w_ru, w_c, b_ru and b_c.
Cell check(const KernelContext& c) {
  require_input_rank(c, 0, 2);
  require_input_rank(c, 1, 2);
  const Cell cell{c.input(0).shape()[0], c.input(0).shape()[1], c.input(1).shape()[1]};
  require_shape(c, 1, {cell.batch, cell.cells});
  require_shape(c, 2, {cell.width(), 2 * cell.cells});
  require_shape(c, 3, {cell.width(), cell.cells});
  require_shape(c, 4, {2 * cell.cells});
  require_shape(c, 5, {cell.cells});
  return cell;
}

std::vector<float> scratch(std::int64_t n) {
  return std::vector<float>(static_cast<std::size_t>(n));
}

void gru_cell(KernelContext& c) {
  const Cell cell = check(c);
  const std::int64_t batch = cell.batch, cells = cell.cells;
  const FloatInput x(c, 0), h_prev(c, 1), w_ru(c, 2), w_c(c, 3), b_ru(c, 4), b_c(c, 5);
  const Shape shape{batch, cells};
  const FloatOutput r(c, 0, shape), u(c, 1, shape), candidate(c, 2, shape), h(c, 3, shape);
  auto joined = scratch(batch * cell.width()), gates = scratch(batch * 2 * cells);
  auto reset = scratch(batch * cells);
  join_columns(x, h_prev, batch, cell.inputs, cells, joined.data());
  multiply(c, {.m = batch, .n = 2 * cells, .k = cell.width()}, joined.data(), w_ru, gates.data());
  for (std::int64_t k = 0; k < batch * cells; ++k) {
    const float* row = gates.data() + k / cells * 2 * cells;
    const std::int64_t unit = k % cells;
    r[k] = sigmoid_of(row[unit] + b_ru[unit]);
    u[k] = sigmoid_of(row[cells + unit] + b_ru[cells + unit]);
    reset[static_cast<std::size_t>(k)] = h_prev[k] * r[k];
  }
  join_columns(x, reset.data(), batch, cell.inputs, cells, joined.data());
  multiply(c, {.m = batch, .n = cells, .k = cell.width()}, joined.data(), w_c, candidate);
  for (std::int64_t k = 0; k < batch * cells; ++k) {
    candidate[k] = std::tanh(candidate[k] + b_c[k % cells]);
    h[k] = u[k] * (h_prev[k] - candidate[k]) + candidate[k];
  }
}

void gru_cell_grad(KernelContext& c) {
  const Cell cell = check(c);
  const std::int64_t batch = cell.batch, cells = cell.cells;
  const Shape shape{batch, cells};
  for (int i = 6; i < 10; ++i) require_shape(c, i, shape);
  const FloatInput h_prev(c, 1), w_ru(c, 2), w_c(c, 3), r(c, 6), u(c, 7), candidate(c, 8),
      d_h(c, 9);
  const FloatOutput d_x(c, 0, c.input(0).shape()), d_h_prev(c, 1, shape), d_c(c, 2, shape),
      d_ru(c, 3, {batch, 2 * cells});
  for (std::int64_t k = 0; k < batch * cells; ++k) {
    d_c[k] = d_h[k] * (1 - u[k]) * (1 - candidate[k] * candidate[k]);
  }
  auto joined = scratch(batch * cell.width()), more = scratch(batch * cell.inputs);
  auto d_reset = scratch(batch * cells);
  multiply(c, {.m = batch, .n = cell.width(), .k = cells, .transpose_b = true}, d_c, w_c,
           joined.data());
  split_columns(joined.data(), batch, cell.inputs, cells, more.data(), d_reset.data());
  for (std::int64_t k = 0; k < batch * cells; ++k) {
    float* row = d_ru + k / cells * 2 * cells;
    const std::int64_t unit = k % cells;
    row[unit] = d_reset[static_cast<std::size_t>(k)] * h_prev[k] * r[k] * (1 - r[k]);
    row[cells + unit] = d_h[k] * (h_prev[k] - candidate[k]) * u[k] * (1 - u[k]);
  }
  multiply(c, {.m = batch, .n = cell.width(), .k = 2 * cells, .transpose_b = true}, d_ru, w_ru,
           joined.data());
  split_columns(joined.data(), batch, cell.inputs, cells, d_x, d_h_prev);
  for (std::size_t k = 0; k < more.size(); ++k) d_x[k] += more[k];
  for (std::int64_t k = 0; k < batch * cells; ++k) {
    d_h_prev[k] += d_reset[static_cast<std::size_t>(k)] * r[k] + d_h[k] * u[k];
  }
}

constexpr TypeConstraint kTypes{"T", {DType::kFloat}};
const KernelRegistration kCell{{.op = "GRUBlockCell", .types = {kTypes}, .run = gru_cell}};
const KernelRegistration kCellGrad{
    {.op = "GRUBlockCellGrad", .types = {kTypes}, .run = gru_cell_grad}};

}  // namespace
}  // namespace tandem::cpu
