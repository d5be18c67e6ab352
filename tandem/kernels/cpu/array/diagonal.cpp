// Bands and diagonals of matrices.

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/array/strided_copy.h"
#include "tandem/kernels/cpu/elementwise/int_input.h"
#include "tandem/kernels/cpu/support/elements.h"

namespace tandem::cpu {
namespace {

// The matrices in the last two axes.
struct Matrices {
  std::int64_t rows, columns, count;

  explicit Matrices(const Array& x) {
    if (x.rank() < 2) {
      throw InvalidArgumentError(cat("input must be at least 2-dim, received shape: ", x.shape()));
    }
    rows = x.shape()[x.rank() - 2];
    columns = x.shape()[x.rank() - 1];
    count = x.shape().product(0, x.rank() - 2);
  }
  std::int64_t diagonal() const { return std::min(rows, columns); }
};

void band_part(KernelContext& c) {
  const Array& x = c.input(0);
  const Matrices m(x);
  const std::int64_t lower = scalar_int_input(c, 1, "num_lower");
  const std::int64_t upper = scalar_int_input(c, 2, "num_upper");
  if (lower > m.rows) {
    throw InvalidArgumentError(
        cat("num_lower must be negative or less or equal to number of rows (", m.rows,
            ") got: ", lower));
  }
  if (upper > m.columns) {
    throw InvalidArgumentError(
        cat("num_upper must be negative or less or equal to number of columns (", m.columns,
            ") got: ", upper));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  with_element(x.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const double cost = 1.0 + static_cast<double>(m.columns) * move_cost(x.dtype());
    c.intra_op().parallel_for(m.count * m.rows, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t row = r % m.rows;
        const std::int64_t first =
            lower < 0 ? 0 : std::clamp<std::int64_t>(row - lower, 0, m.columns);
        const std::int64_t last =
            upper < 0 ? m.columns : std::clamp<std::int64_t>(row + upper + 1, first, m.columns);
        T* line = to + r * m.columns;
        if (to != from) copy_elements(line + first, from + r * m.columns + first, last - first);
        clear_elements(line, first);
        clear_elements(line + last, m.columns - last);
      }
    });
  });
}

void put_diagonals(KernelContext& c, const Matrices& m, Array& out, const Array& diagonal) {
  StridedCopy copy;
  copy.add(m.count, m.rows * m.columns, m.diagonal());
  copy.add(m.diagonal(), m.columns + 1, 1);
  copy.run(c.intra_op(), out.dtype(), out.raw_data(), diagonal.raw_data());
}

void matrix_diag(KernelContext& c) {
  const Array& diagonal = c.input(0);
  if (diagonal.rank() < 1) {
    throw InvalidArgumentError(
        cat("input must be at least 1-dim, received shape: ", diagonal.shape()));
  }
  Shape shape = diagonal.shape();
  shape.add_dim(shape[shape.rank() - 1]);
  Array& out = c.allocate_output(0, shape);
  clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
  put_diagonals(c, Matrices(out), out, diagonal);
}

void matrix_diag_part(KernelContext& c) {
  const Array& x = c.input(0);
  const Matrices m(x);
  Shape shape;
  for (int i = 0; i < x.rank() - 2; ++i) shape.add_dim(x.shape()[i]);
  shape.add_dim(m.diagonal());
  Array& out = c.allocate_output(0, shape);
  StridedCopy copy;
  copy.add(m.count, m.diagonal(), m.rows * m.columns);
  copy.add(m.diagonal(), 1, m.columns + 1);
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data());
}

void matrix_set_diag(KernelContext& c) {
  const Array& x = c.input(0);
  const Array& diagonal = c.input(1);
  const Matrices m(x);
  Shape wanted;
  for (int i = 0; i < x.rank() - 2; ++i) wanted.add_dim(x.shape()[i]);
  wanted.add_dim(m.diagonal());
  if (!(diagonal.shape() == wanted)) {
    throw InvalidArgumentError(
        cat("must have diagonal.shape == input.shape[:-2] + min(input.shape[-2:]), but "
            "received input shape: ",
            x.shape(), " and diagonal shape: ", diagonal.shape()));
  }
  Array& out = c.reuse_or_allocate_output(0, 0, x.shape());
  if (out.raw_data() != x.raw_data()) {
    copy_flat(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data(), x.num_elements());
  }
  put_diagonals(c, m, out, diagonal);
}

void diag(KernelContext& c) {
  const Array& x = c.input(0);
  if (x.rank() < 1) throw InvalidArgumentError("Input must be at least rank 1, got 0");
  if (2 * x.rank() > Shape::kMaxRank) {
    throw InvalidArgumentError(cat("The result would have more than ", Shape::kMaxRank, " axes."));
  }
  Shape shape = x.shape();
  for (int i = 0; i < x.rank(); ++i) shape.add_dim(x.shape()[i]);
  Array& out = c.allocate_output(0, shape);
  clear_flat(c.intra_op(), out.dtype(), out.raw_data(), out.num_elements());
  StridedCopy copy;
  copy.add(x.num_elements(), x.num_elements() + 1, 1);
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data());
}

void diag_part(KernelContext& c) {
  const Array& x = c.input(0);
  if (x.rank() == 0 || x.rank() % 2 != 0) {
    throw InvalidArgumentError(
        cat("The rank of the tensor should be even and positive, got shape ", x.shape()));
  }
  Shape shape;
  for (int i = 0; i < x.rank() / 2; ++i) {
    if (x.shape()[i] != x.shape()[i + x.rank() / 2]) {
      throw InvalidArgumentError(cat("Invalid shape ", x.shape(), ": dimensions ", i, " and ",
                                     i + x.rank() / 2, " do not match."));
    }
    shape.add_dim(x.shape()[i]);
  }
  Array& out = c.allocate_output(0, shape);
  StridedCopy copy;
  copy.add(shape.num_elements(), 1, shape.num_elements() + 1);
  copy.run(c.intra_op(), x.dtype(), out.raw_data(), x.raw_data());
}

const KernelRegistration kMatrixBandPart{{.op = "MatrixBandPart", .run = band_part}};
const KernelRegistration kMatrixDiag{{.op = "MatrixDiag", .run = matrix_diag}};
const KernelRegistration kMatrixDiagPart{{.op = "MatrixDiagPart", .run = matrix_diag_part}};
const KernelRegistration kMatrixSetDiag{{.op = "MatrixSetDiag", .run = matrix_set_diag}};
const KernelRegistration kDiag{{.op = "Diag", .run = diag}};
const KernelRegistration kDiagPart{{.op = "DiagPart", .run = diag_part}};

}  // namespace
}  // namespace tandem::cpu
