#pragma once

#include <cstdint>

#include "tandem/kernels/cpu/linalg/matrix_product.h"

namespace tandem::cpu {

/// How a product is cut into pieces that threads take: `batch` ranges of matrices, or `rows` times
/// `columns` parts of one, or `sums` parts of its sums, to be added up.
///
/// What one core changes and another reads can cost more than an optimizer's whole step on it. So
/// weights, b of a layer's product, are cut by their rows where that is cheap: in the product by
/// its sums, in the gradient by rows, and the optimizer has every thread change the same rows.
struct MatrixGrid {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t sums = 1;
  std::int64_t pieces() const { return batch * rows * columns * sums; }
};

struct IndexRange {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

double multiplications(const MatrixProduct& p);

/// For so many threads; with 0 by the sizes alone, as determinism asks for.
MatrixGrid cut_matrices(const MatrixProduct& p, std::int64_t threads);
/// The number of threads that a context's products are cut for; 0 under determinism.
inline std::int64_t threads_to_cut_for(const KernelContext& context) {
  return context.deterministic() ? 0 : context.intra_op().threads();
}

/// Part i of n of [0, count); inner borders are multiples of `unit`.
IndexRange part_of(std::int64_t i, std::int64_t n, std::int64_t count, std::int64_t unit);

}  // namespace tandem::cpu
