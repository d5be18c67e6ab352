#include "tandem/ops/math_functions.h"

#include <numeric>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem {

Tensor scalar_mul(Operand scalar, const Tensor& x) {
  if (!scalar.is_number()) {
    const Tensor s = Operand(scalar).take();
    if (s.rank() > 0) {
      throw InvalidArgumentError(
          cat("td::scalar_mul: Only scalar multiply works, got shape ", s.partial_shape(), "."));
    }
  }
  return std::move(scalar) * x;
}

namespace math {

Tensor lbeta(const Tensor& x) { return reduce_sum(lgamma(x), -1) - lgamma(reduce_sum(x, -1)); }

Tensor polyval(const std::vector<Tensor>& coeffs, const Tensor& x) {
  if (coeffs.empty()) return zeros_like(x);
  Tensor p = coeffs.front();
  for (std::size_t i = 1; i < coeffs.size(); ++i) p = coeffs[i] + p * x;
  return p;
}

namespace {

// All differences of neighbours in row-major order.
Tensor neighbours(const Tensor& x, bool first) {
  const Tensor flat = reshape(x, {-1});
  return first ? flat[Slice(none, -1)] : flat[Slice(1, none)];
}

Tensor with_last_axis(const Tensor& t, std::int64_t axis, int rank) {
  std::vector<std::int64_t> perm(static_cast<std::size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<std::size_t>(axis)], perm.back());
  return transpose(t, perm);
}

TopK largest(const Tensor& x, std::int64_t k, std::int64_t axis, bool smallest) {
  const int rank = x.rank();
  if (rank < 1 || axis < -rank || axis >= rank) {
    throw InvalidArgumentError(cat("td::math::approx_max_k: axis ", axis,
                                   " is not one of a tensor of shape ", x.partial_shape(), "."));
  }
  if (axis < 0) axis += rank;
  const Tensor rows = with_last_axis(smallest ? negative(x) : x, axis, rank);
  const TopK top = top_k(rows, k);
  const Tensor values = smallest ? negative(top.values) : top.values;
  return {with_last_axis(values, axis, rank), with_last_axis(top.indices, axis, rank)};
}

}  // namespace

Tensor is_non_decreasing(const Tensor& x) {
  return reduce_all(neighbours(x, true) <= neighbours(x, false));
}
Tensor is_strictly_increasing(const Tensor& x) {
  return reduce_all(neighbours(x, true) < neighbours(x, false));
}

Tensor zero_fraction(const Tensor& value) {
  const Tensor zeros = cast(size(value, int64) - count_nonzero(value), float32);
  return zeros / cast(size(value, int64), float32);
}

Tensor unsorted_segment_sqrt_n(const Tensor& data, const Tensor& segment_ids,
                               const Tensor& num_segments) {
  const Tensor counts = maximum(
      unsorted_segment_sum(ones_like(segment_ids, data.dtype()), segment_ids, num_segments), 1);
  // One count for each row of the sums, whatever axes follow.
  const Tensor sums = unsorted_segment_sum(data, segment_ids, num_segments);
  std::vector<std::int64_t> dims(static_cast<std::size_t>(sums.rank()), 1);
  dims[0] = -1;
  return sums / sqrt(reshape(counts, dims));
}

TopK approx_max_k(const Tensor& operand, std::int64_t k, std::int64_t axis) {
  return largest(operand, k, axis, false);
}
TopK approx_min_k(const Tensor& operand, std::int64_t k, std::int64_t axis) {
  return largest(operand, k, axis, true);
}

}  // namespace math
}  // namespace tandem
