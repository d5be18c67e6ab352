#pragma once

#include <cstdint>
#include <utility>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/ops/axes.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

// Reductions along axes: all axes unless some are named. The reduced axes vanish, or stay with size
// 1 if `keepdims`. An axis out of [-rank, rank) or named twice is an InvalidArgumentError. Sums of
// half and bfloat16 accumulate in float, and a result has the same bits for any number of threads.

/// Options of reductions: `reduce_sum(x, {.axis = 1, .keepdims = true})`.
struct ReduceOptions {
  Axes axis = {};
  bool keepdims = false;
};
/// After an axis: `reduce_sum(x, 1, {.keepdims = true})`.
struct KeepdimsOptions {
  bool keepdims = false;
};

TANDEM_EXPORT Tensor reduce_sum(Tensor x, Axes axis = {}, bool keepdims = false);
/// The mean; of no elements: NaN. Integers stay integers (the quotient is cut off): td::cast first
/// for a fraction.
TANDEM_EXPORT Tensor reduce_mean(Tensor x, Axes axis = {}, bool keepdims = false);
TANDEM_EXPORT Tensor reduce_prod(Tensor x, Axes axis = {}, bool keepdims = false);
/// The maximum; of no elements: the smallest value of the dtype. NaN if there is one.
TANDEM_EXPORT Tensor reduce_max(Tensor x, Axes axis = {}, bool keepdims = false);
/// The minimum; of no elements: the largest value of the dtype. NaN if there is one.
TANDEM_EXPORT Tensor reduce_min(Tensor x, Axes axis = {}, bool keepdims = false);
/// Bool tensors. Of nothing: true.
TANDEM_EXPORT Tensor reduce_all(Tensor x, Axes axis = {}, bool keepdims = false);
/// Bool tensors. Of nothing: false.
TANDEM_EXPORT Tensor reduce_any(Tensor x, Axes axis = {}, bool keepdims = false);
/// log(sum(exp(x))), without overflow.
TANDEM_EXPORT Tensor reduce_logsumexp(Tensor x, Axes axis = {}, bool keepdims = false);

// Templates: braces without names, `reduce_sum(x, {0, 1})`, are axes.
#define TANDEM_REDUCTION_OPTIONS(NAME)                               \
  template <int = 0>                                                 \
  Tensor NAME(Tensor x, const ReduceOptions& options) {              \
    return NAME(std::move(x), options.axis, options.keepdims);       \
  }                                                                  \
  template <int = 0>                                                 \
  Tensor NAME(Tensor x, Axes axis, const KeepdimsOptions& options) { \
    return NAME(std::move(x), std::move(axis), options.keepdims);    \
  }
TANDEM_REDUCTION_OPTIONS(reduce_sum)
TANDEM_REDUCTION_OPTIONS(reduce_mean)
TANDEM_REDUCTION_OPTIONS(reduce_prod)
TANDEM_REDUCTION_OPTIONS(reduce_max)
TANDEM_REDUCTION_OPTIONS(reduce_min)
TANDEM_REDUCTION_OPTIONS(reduce_all)
TANDEM_REDUCTION_OPTIONS(reduce_any)
TANDEM_REDUCTION_OPTIONS(reduce_logsumexp)

/// The index of the first largest value along `axis` (NaN counts as none), as int64 unless asked
/// otherwise.
TANDEM_EXPORT Tensor argmax(Tensor x, std::int64_t axis = 0, DType output_type = DType::kInt64);
/// The index of the first smallest value along `axis`.
TANDEM_EXPORT Tensor argmin(Tensor x, std::int64_t axis = 0, DType output_type = DType::kInt64);

struct CumulativeOptions {
  bool exclusive = false;  ///< element i is the sum of those before i
  bool reverse = false;    ///< from the end to the beginning
};
/// Running sums along `axis`: [a, b, c] gives [a, a + b, a + b + c].
TANDEM_EXPORT Tensor cumsum(Tensor x, std::int64_t axis = 0, CumulativeOptions options = {});

namespace math {
using tandem::argmax;
using tandem::argmin;
using tandem::cumsum;
using tandem::CumulativeOptions;
using tandem::KeepdimsOptions;
using tandem::reduce_all;
using tandem::reduce_any;
using tandem::reduce_logsumexp;
using tandem::reduce_max;
using tandem::reduce_mean;
using tandem::reduce_min;
using tandem::reduce_prod;
using tandem::reduce_sum;
using tandem::ReduceOptions;

/// Mean of the squared distances from the mean (divided by n, not n - 1). Floating or complex.
TANDEM_EXPORT Tensor reduce_variance(Tensor x, Axes axis = {}, bool keepdims = false);
/// The root of reduce_variance.
TANDEM_EXPORT Tensor reduce_std(Tensor x, Axes axis = {}, bool keepdims = false);
/// sqrt(sum(x²)).
TANDEM_EXPORT Tensor reduce_euclidean_norm(Tensor x, Axes axis = {}, bool keepdims = false);
TANDEM_REDUCTION_OPTIONS(reduce_variance)
TANDEM_REDUCTION_OPTIONS(reduce_std)
TANDEM_REDUCTION_OPTIONS(reduce_euclidean_norm)
/// Running products along `axis`.
TANDEM_EXPORT Tensor cumprod(Tensor x, std::int64_t axis = 0, CumulativeOptions options = {});
/// Running log(sum(exp(x))) along `axis`.
TANDEM_EXPORT Tensor cumulative_logsumexp(Tensor x, std::int64_t axis = 0,
                                          CumulativeOptions options = {});
/// The number of elements that are not 0.
TANDEM_EXPORT Tensor count_nonzero(Tensor x, Axes axis = {}, bool keepdims = false,
                                   DType dtype = DType::kInt64);
TANDEM_REDUCTION_OPTIONS(count_nonzero)
}  // namespace math
#undef TANDEM_REDUCTION_OPTIONS

}  // namespace tandem
