#include "tandem/keras/internal/align.h"

#include "tandem/core/error.h"
#include "tandem/keras/internal/shape_text.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::keras::internal {

Pair to_same_rank(Tensor x, Tensor y) {
  const int x_rank = x.rank();
  const int y_rank = y.rank();
  if (x_rank < 0 || y_rank < 0) return {std::move(x), std::move(y)};
  if (x_rank == y_rank + 1 && x.dim(-1) == 1) {
    if (y_rank == 1) return {std::move(x), expand_dims(std::move(y), -1)};
    return {squeeze(std::move(x), {-1}), std::move(y)};
  }
  if (y_rank == x_rank + 1 && y.dim(-1) == 1) {
    if (x_rank == 1) return {expand_dims(std::move(x), -1), std::move(y)};
    return {std::move(x), squeeze(std::move(y), {-1})};
  }
  return {std::move(x), std::move(y)};
}

Pair align(const std::string& who, const Tensor& y_true, const Tensor& y_pred) {
  Pair pair = to_same_rank(cast(y_true, y_pred.dtype()), y_pred);
  if (!pair.x.partial_shape().is_compatible(pair.y.partial_shape())) {
    throw InvalidArgumentError(
        cat("Arguments `target` and `output` must have the same shape. Received: target.shape=",
            shape_text(y_true.partial_shape()),
            ", output.shape=", shape_text(y_pred.partial_shape()), " in ", who,
            ". Give labels of the predictions' shape, or choose another loss or metric (sparse "
            "ones take class "
            "numbers)."));
  }
  return pair;
}

}  // namespace tandem::keras::internal
