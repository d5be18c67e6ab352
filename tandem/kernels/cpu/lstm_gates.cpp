// _LstmGates: the elementwise end of an LSTM's step.

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/fused_program.h"
#include "tandem/kernels/cpu/scratch.h"

namespace tandem::cpu {
namespace {

struct Loops {
  ElementLoops sigmoid = float_loops_of("Sigmoid"), tanh = float_loops_of("Tanh"),
               add = float_loops_of("AddV2"), mul = float_loops_of("Mul");
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

const KernelRegistration kLstmGates{
    {.op = "_LstmGates", .name = "vectors", .types = {{"T", {DType::kFloat}}}, .run = lstm_gates}};

}  // namespace
}  // namespace tandem::cpu
