#include "tandem/ops/grid_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/debugging_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {

std::vector<Tensor> meshgrid(const std::vector<Tensor>& vectors, StringView indexing) {
  if (indexing != "xy" && indexing != "ij") {
    throw InvalidArgumentError(
        cat("td::meshgrid: indexing is \"xy\" or \"ij\", not '", indexing, "'."));
  }
  if (vectors.empty()) return {};
  const std::size_t n = vectors.size();
  std::vector<std::size_t> axis(n);
  for (std::size_t i = 0; i < n; ++i) axis[i] = i;
  if (indexing == "xy" && n > 1) std::swap(axis[0], axis[1]);
  std::vector<Tensor> sizes(n);
  for (std::size_t i = 0; i < n; ++i) sizes[axis[i]] = size(vectors[i]);
  const Tensor whole = stack(sizes);
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<std::int64_t> dims(n, 1);
    dims[axis[i]] = -1;
    grids.push_back(multiply(reshape(vectors[i], dims), ones(whole, vectors[i].dtype())));
  }
  return grids;
}

Tensor sequence_mask(const Tensor& lengths, const Tensor& maxlen, DType dtype) {
  const Tensor most = maxlen.defined() ? cast(maxlen, lengths.dtype()) : reduce_max(lengths);
  const DType type = lengths.dtype();
  const Tensor zero = cast(Tensor(0), type), one = cast(Tensor(1), type);
  const Tensor row = range(zero, maximum(zero, most), one);
  return cast(row < expand_dims(lengths, -1), dtype);
}

Tensor unravel_index(Tensor indices, Tensor dims) {
  return raw_op("UnravelIndex", {std::move(indices), std::move(dims)})[0];
}

namespace math {

Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions, const Tensor& num_classes,
                        const Tensor& weights, DType dtype) {
  // An axis of size 1 at the end of one of the two is no obstacle.
  Tensor truth = labels, guess = predictions;
  if (guess.rank() == truth.rank() + 1 && guess.dim(-1) == 1) guess = squeeze(guess, {-1});
  if (truth.rank() == guess.rank() + 1 && truth.dim(-1) == 1) truth = squeeze(truth, {-1});
  truth = cast(truth, int64);
  guess = cast(guess, int64);
  debugging::assert_non_negative(truth, "`labels` contains negative values");
  debugging::assert_non_negative(guess, "`predictions` contains negative values");
  Tensor classes;
  if (num_classes.defined()) {
    classes = cast(num_classes, int64);
    debugging::assert_less(truth, classes, "`labels` out of bound");
    debugging::assert_less(guess, classes, "`predictions` out of bound");
  } else {
    classes = maximum(reduce_max(guess), reduce_max(truth)) + 1;
  }
  const Tensor values = weights.defined() ? cast(weights, dtype) : ones_like(guess, dtype);
  return scatter_nd(stack({truth, guess}, -1), values, IntList(stack({classes, classes})));
}

}  // namespace math
}  // namespace tandem
