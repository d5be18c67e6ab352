// _LstmGates, _GruGates: the elementwise ends of recurrent steps.

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/fused/fused_program.h"
#include "tandem/kernels/cpu/support/scratch.h"

namespace tandem::cpu {
namespace {

struct Loops {
  ElementLoops sigmoid = float_loops_of("Sigmoid"), tanh = float_loops_of("Tanh"),
               add = float_loops_of("AddV2"), sub = float_loops_of("Sub"),
               mul = float_loops_of("Mul");
};

// One row; `t` has room for three times `n`.
void step(const Loops& f, const float* gates, const float* cell, std::int64_t n, float* t,
          float* new_cell, float* output) {
  f.sigmoid.unary(gates, t, 2 * n, 0);           // i, f
  f.tanh.unary(gates + 2 * n, t + 2 * n, n, 0);  // g
  f.mul.binary(t, t + 2 * n, t, n, false, false, 0);
  f.mul.binary(t + n, cell, t + n, n, false, false, 0);
  f.add.binary(t, t + n, new_cell, n, false, false, 0);
  f.tanh.unary(new_cell, t, n, 0);
  f.sigmoid.unary(gates + 3 * n, t + n, n, 0);  // o
  f.mul.binary(t, t + n, output, n, false, false, 0);
}

void lstm_gates(KernelContext& c) {
  static const Loops loops;
  const Array &gates = c.input(0), &cell = c.input(1);
  if (gates.rank() != 2 || gates.shape()[1] % 4 != 0) {
    throw InvalidArgumentError(cat(
        "The gates must be a matrix of four groups of columns, but have shape ", gates.shape()));
  }
  const std::int64_t rows = gates.shape()[0], n = gates.shape()[1] / 4;
  const Shape shape = broadcast(Shape{rows, n}, cell.shape());
  if (cell.rank() != 2 || cell.shape()[1] != n || shape[1] != n) {
    throw InvalidArgumentError(cat("Incompatible shapes: ", gates.shape(), " gates of ", n,
                                   " units vs. a cell of ", cell.shape()));
  }
  Array &new_cell = c.allocate_output(0, shape), &output = c.allocate_output(1, shape);
  const std::int64_t cell_rows = cell.shape()[0];
  c.intra_op().parallel_for(
      shape[0], 8 * static_cast<double>(n), [&](std::int64_t begin, std::int64_t end) {
        const Scratch t(static_cast<std::size_t>(3 * n) * sizeof(float));
        for (std::int64_t i = begin; i < end; ++i) {
          step(loops, gates.data<float>() + (rows == 1 ? 0 : i) * 4 * n,
               cell.data<float>() + (cell_rows == 1 ? 0 : i) * n, n, t.as<float>(),
               new_cell.data<float>() + i * n, output.data<float>() + i * n);
        }
      });
}

// One row; `t` has room for three times `n`.
void gru_step(const Loops& f, const float* x, const float* h, const float* state, std::int64_t n,
              float* t, float* out) {
  const float one = 1;
  f.add.binary(x, h, t, 2 * n, false, false, 0);
  f.sigmoid.unary(t, t, 2 * n, 0);  // z, r
  f.mul.binary(t + n, h + 2 * n, t + n, n, false, false, 0);
  f.add.binary(x + 2 * n, t + n, t + n, n, false, false, 0);
  f.tanh.unary(t + n, t + n, n, 0);
  f.sub.binary(&one, t, t + 2 * n, n, true, false, 0);
  f.mul.binary(t + 2 * n, t + n, t + 2 * n, n, false, false, 0);
  f.mul.binary(t, state, t, n, false, false, 0);
  f.add.binary(t, t + 2 * n, out, n, false, false, 0);
}

void gru_gates(KernelContext& c) {
  static const Loops loops;
  const Array &x = c.input(0), &h = c.input(1), &state = c.input(2);
  if (x.rank() != 2 || h.rank() != 2 || x.shape()[1] != h.shape()[1] || x.shape()[1] % 3 != 0) {
    throw InvalidArgumentError(
        cat("The gates must be two matrices of three groups of columns, but "
            "have shapes ",
            x.shape(), " and ", h.shape()));
  }
  const std::int64_t n = x.shape()[1] / 3;
  const Shape shape =
      broadcast(broadcast(Shape{x.shape()[0], n}, Shape{h.shape()[0], n}), state.shape());
  if (state.rank() != 2 || state.shape()[1] != n) {
    throw InvalidArgumentError(
        cat("Incompatible shapes: gates of ", n, " units vs. a state of ", state.shape()));
  }
  Array& out = c.allocate_output(0, shape);
  const auto row = [](const Array& a, std::int64_t i) {
    return a.data<float>() + (a.shape()[0] == 1 ? 0 : i) * a.shape()[1];
  };
  c.intra_op().parallel_for(shape[0], 8 * static_cast<double>(n),
                            [&](std::int64_t begin, std::int64_t end) {
                              const Scratch t(static_cast<std::size_t>(3 * n) * sizeof(float));
                              for (std::int64_t i = begin; i < end; ++i)
                                gru_step(loops, row(x, i), row(h, i), row(state, i), n,
                                         t.as<float>(), out.data<float>() + i * n);
                            });
}

const KernelRegistration kGruGates{
    {.op = "_GruGates", .name = "vectors", .types = {{"T", {DType::kFloat}}}, .run = gru_gates}};
const KernelRegistration kLstmGates{
    {.op = "_LstmGates", .name = "vectors", .types = {{"T", {DType::kFloat}}}, .run = lstm_gates}};

}  // namespace
}  // namespace tandem::cpu
