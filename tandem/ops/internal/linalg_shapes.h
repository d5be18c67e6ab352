#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tandem/graph/inference_context.h"
#include "tandem/ops/internal/sizes.h"

// Shapes of matrices in the last two axes, for shape functions.

namespace tandem::internal {

struct MatrixShape {
  PartialShape batch;  ///< the axes before
  std::int64_t rows = kUnknown;
  std::int64_t columns = kUnknown;
};

/// Fails unless input i has at least two axes.
inline MatrixShape matrix_of(const InferenceContext& c, int i) {
  c.require_rank_at_least(i, 2);
  const PartialShape& in = c.input(i);
  if (!in.has_rank()) return {};
  return {PartialShape(dims_between(in, 0, in.rank() - 2)), in.dim(-2), in.dim(-1)};
}

inline void require_square(const InferenceContext& c, int i) {
  const MatrixShape m = matrix_of(c, i);
  c.merge_dim(m.rows, m.columns, "rows and columns of a square matrix");
}

inline PartialShape with_vector(const PartialShape& batch, std::int64_t size) {
  if (!batch.has_rank()) return PartialShape::unknown();
  std::vector<std::int64_t> dims = batch.dims();
  dims.push_back(size);
  return PartialShape(std::move(dims));
}

inline PartialShape with_matrix(const PartialShape& batch, std::int64_t rows,
                                std::int64_t columns) {
  return with_vector(with_vector(batch, rows), columns);
}

}  // namespace tandem::internal
