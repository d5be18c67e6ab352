#include "tandem/keras/internal/rank_adaption.h"

#include "tandem/ops/shape_ops.h"

namespace tandem::keras::internal {

Tensor adapt_rank(const Tensor& x, const PartialShape& wanted) {
  const int rank = x.rank();
  if (rank < 1 || !wanted.has_rank() || wanted.rank() == rank) return x;
  if (rank == wanted.rank() - 1 && wanted.dim(-1) == 1) return expand_dims(x, -1);
  if (rank == wanted.rank() + 1 && x.dim(-1) == 1) return squeeze(x, {-1});
  return x;
}

}  // namespace tandem::keras::internal
