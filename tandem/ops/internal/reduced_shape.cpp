#include "tandem/ops/internal/reduced_shape.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"

namespace tandem::internal {
namespace {

// Which axes are reduced, where both the rank and the axes are known.
std::optional<std::vector<bool>> known_mask(const Tensor& x, const Tensor& axes) {
  const auto list = known_ints(axes);
  const int rank = x.rank();
  if (!list || rank < 0) return std::nullopt;
  std::vector<bool> mask(static_cast<std::size_t>(rank), false);
  for (std::int64_t axis : *list)
    mask.at(static_cast<std::size_t>(axis < 0 ? axis + rank : axis)) = true;
  return mask;
}

// The axes as an int32 vector, counted from the front.
Tensor normalized_axes(const Tensor& x, const Tensor& axes) {
  return floormod(reshape(cast(axes, int32), {-1}), rank(x));
}

// The mask as a bool vector.
Tensor computed_mask(const Tensor& x, const Tensor& axes) {
  const Tensor all = op1("Range", {Tensor(0), rank(x), Tensor(1)});
  return reduce_any(equal(expand_dims(normalized_axes(x, axes), 1), expand_dims(all, 0)), 0);
}

// x as a matrix: reduced elements by kept ones.
struct AsMatrix {
  Tensor matrix;
  Tensor permuted_shape;
  Tensor inverse;  // of the permutation
};

AsMatrix as_matrix(const Tensor& x, const Tensor& axes) {
  Tensor reduced;
  Tensor kept;
  if (const auto mask = known_mask(x, axes)) {
    std::vector<std::int64_t> lists[2];
    for (std::size_t i = 0; i < mask->size(); ++i)
      lists[(*mask)[i] ? 0 : 1].push_back(static_cast<std::int64_t>(i));
    reduced = int_vector(lists[0], int32);
    kept = int_vector(lists[1], int32);
  } else {
    reduced = normalized_axes(x, axes);
    kept = reshape(cast(where(logical_not(computed_mask(x, axes))), int32), {-1});
  }
  const Tensor perm = concat({reduced, kept}, 0);
  const Tensor sizes = shape(x);
  const Tensor permuted = transpose(x, perm);
  const Tensor matrix_shape =
      stack({reduce_prod(gather(sizes, reduced)), reduce_prod(gather(sizes, kept))});
  return {reshape(permuted, matrix_shape), shape(permuted), op1("InvertPermutation", {perm})};
}

}  // namespace

Tensor reshape_as_reduced(Tensor result, const Tensor& x, const Tensor& axes) {
  if (const auto mask = known_mask(x, axes)) {
    if (auto dims = known_dims(x)) {
      for (std::size_t i = 0; i < dims->size(); ++i) {
        if ((*mask)[i]) (*dims)[i] = 1;
      }
      return reshape(std::move(result), *dims);
    }
    for (std::size_t i = 0; i < mask->size(); ++i) {
      if ((*mask)[i]) result = expand_dims(std::move(result), static_cast<std::int64_t>(i));
    }
    return result;
  }
  return reshape(std::move(result), where(computed_mask(x, axes), 1, shape(x)));
}

Tensor broadcast_like(Tensor value, const Tensor& x) {
  if (const auto dims = known_dims(x)) {
    if (known_dims(value) == dims) return value;
    return broadcast_to(std::move(value), *dims);
  }
  return broadcast_to(std::move(value), shape(x));
}

Tensor reduced_count(const Tensor& x, const Tensor& result, DType dtype) {
  const auto from = known_dims(x);
  const auto to = known_dims(result);
  if (from && to) {
    return int_scalar(
        Shape(*from).num_elements() / std::max<std::int64_t>(1, Shape(*to).num_elements()), dtype);
  }
  const Tensor results = maximum(size(result, int64), 1);
  return cast(floordiv(size(x, int64), results), dtype);
}

Tensor product_of_others(const Tensor& x, const Tensor& axes) {
  const AsMatrix m = as_matrix(x, axes);
  const Tensor before = math::cumprod(m.matrix, 0, {.exclusive = true});
  const Tensor after = math::cumprod(m.matrix, 0, {.exclusive = true, .reverse = true});
  const Tensor others = multiply(math::conj(before), math::conj(after));
  return transpose(reshape(others, m.permuted_shape), m.inverse);
}

}  // namespace tandem::internal
