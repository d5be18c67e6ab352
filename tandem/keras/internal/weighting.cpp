#include "tandem/keras/internal/weighting.h"

#include "tandem/keras/internal/align.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"

namespace tandem::keras::internal {
namespace {

// The number of elements as a scalar: a constant where the shape is known.
Tensor count_of(const Tensor& x, DType dtype) {
  const std::int64_t count = x.partial_shape().num_elements();
  return count >= 0 ? constant(Tensor(static_cast<double>(count)), dtype) : cast(size(x), dtype);
}

Tensor divide_by_count(Tensor sum, const Tensor& values) {
  const std::int64_t count = values.partial_shape().num_elements();
  if (count == 1) return sum;
  if (count > 0) return std::move(sum) / static_cast<double>(count);
  return math::divide_no_nan(sum, count_of(values, sum.dtype()));
}

// Keras scales the weight of what the mask leaves so that the mean is over that alone.
Tensor with_mask(const Tensor& sample_weight, const Tensor& mask, DType dtype,
                 Reduction reduction) {
  if (!mask.defined()) return sample_weight;
  Tensor weight = cast(mask, dtype);
  if (reduction == Reduction::kSumOverBatchSize || reduction == Reduction::kMean) {
    weight = weight * math::divide_no_nan(count_of(mask, dtype), reduce_sum(weight));
  }
  if (!sample_weight.defined()) return weight;
  const Pair pair = to_same_rank(weight, cast(sample_weight, dtype));
  return pair.x * pair.y;
}

}  // namespace

Tensor masked_weight(const Tensor& sample_weight, const Tensor& mask) {
  return with_mask(sample_weight, mask, float32, Reduction::kSum);
}

Tensor reduce_values(Tensor values, const Tensor& sample_weight, const Tensor& mask,
                     Reduction reduction) {
  Tensor weight = with_mask(sample_weight, mask, values.dtype(), reduction);
  if (weight.defined()) {
    const DType dtype = values.dtype();
    const Pair pair = to_same_rank(std::move(values), cast(weight, dtype));
    weight = pair.y;
    values = pair.x * pair.y;
  }
  if (reduction == Reduction::kNone || values.rank() == 0) return values;
  const Tensor sum = reduce_sum(values);
  if (reduction == Reduction::kSum) return sum;
  if (reduction == Reduction::kMeanWithSampleWeight && weight.defined()) {
    return math::divide_no_nan(sum, reduce_sum(weight));
  }
  return divide_by_count(sum, values);
}

namespace {

std::vector<std::int64_t> axes_between(int begin, int end) {
  std::vector<std::int64_t> axes;
  for (int i = begin; i < end; ++i) axes.push_back(i);
  return axes;
}

}  // namespace

WeightedSum weighted_sum(Tensor values, const Tensor& sample_weight) {
  values = cast(std::move(values), float32);
  Tensor weight;
  if (sample_weight.defined()) {
    Pair pair = to_same_rank(std::move(values), cast(sample_weight, float32));
    values = std::move(pair.x);
    weight = std::move(pair.y);
    const int rank = weight.rank();
    if (values.rank() > rank) values = reduce_mean(values, axes_between(rank, values.rank()));
    weight = broadcast_to(weight, shape(values));
    values = values * weight;
    if (rank > 1) weight = reduce_mean(weight, axes_between(1, rank));
  }
  if (values.rank() > 1) values = reduce_mean(values, axes_between(1, values.rank()));
  Tensor count = weight.defined() ? reduce_sum(weight) : count_of(values, float32);
  return {values.rank() == 0 ? values : reduce_sum(values), std::move(count)};
}

}  // namespace tandem::keras::internal
