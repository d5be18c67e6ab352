#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/axes.h"
#include "tandem/ops/operand.h"
#include "tandem/runtime/tensor.h"

/// Numbers made of many, along all axes unless some are named.
namespace tandem::keras::ops {

#define TANDEM_KERAS_REDUCTION(NAME) \
  TANDEM_EXPORT Tensor NAME(const Tensor& x, Axes axis = {}, bool keepdims = false);
TANDEM_KERAS_REDUCTION(all)
TANDEM_KERAS_REDUCTION(any)
TANDEM_KERAS_REDUCTION(amax)
TANDEM_KERAS_REDUCTION(amin)
TANDEM_KERAS_REDUCTION(max)
TANDEM_KERAS_REDUCTION(min)
TANDEM_KERAS_REDUCTION(mean)
TANDEM_KERAS_REDUCTION(median)
TANDEM_KERAS_REDUCTION(prod)
TANDEM_KERAS_REDUCTION(ptp)
TANDEM_KERAS_REDUCTION(std)
TANDEM_KERAS_REDUCTION(sum)
TANDEM_KERAS_REDUCTION(var)
TANDEM_KERAS_REDUCTION(logsumexp)
// NaN does not count.
TANDEM_KERAS_REDUCTION(nanmax)
TANDEM_KERAS_REDUCTION(nanmean)
TANDEM_KERAS_REDUCTION(nanmedian)
TANDEM_KERAS_REDUCTION(nanmin)
TANDEM_KERAS_REDUCTION(nanprod)
TANDEM_KERAS_REDUCTION(nanstd)
TANDEM_KERAS_REDUCTION(nansum)
TANDEM_KERAS_REDUCTION(nanvar)
#undef TANDEM_KERAS_REDUCTION
TANDEM_EXPORT Tensor count_nonzero(const Tensor& x, Axes axis = {});
TANDEM_EXPORT Tensor average(const Tensor& x, Axes axis = {}, const Tensor& weights = {});
/// q in [0, 1]; between values method "linear", "lower", "higher", "midpoint" or "nearest".
TANDEM_EXPORT Tensor quantile(const Tensor& x, const Tensor& q, Axes axis = {},
                              StringView method = "linear", bool keepdims = false);
/// q in [0, 100].
TANDEM_EXPORT Tensor percentile(const Tensor& x, const Tensor& q, Axes axis = {},
                                StringView method = "linear", bool keepdims = false);
TANDEM_EXPORT Tensor nanquantile(const Tensor& x, const Tensor& q, Axes axis = {},
                                 StringView method = "linear", bool keepdims = false);
TANDEM_EXPORT Tensor nanpercentile(const Tensor& x, const Tensor& q, Axes axis = {},
                                   StringView method = "linear", bool keepdims = false);
/// int32; of the flattened values without an axis.
TANDEM_EXPORT Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis = {},
                            bool keepdims = false);
TANDEM_EXPORT Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis = {},
                            bool keepdims = false);
TANDEM_EXPORT Tensor nanargmax(const Tensor& x, std::optional<std::int64_t> axis = {},
                               bool keepdims = false);
TANDEM_EXPORT Tensor nanargmin(const Tensor& x, std::optional<std::int64_t> axis = {},
                               bool keepdims = false);
TANDEM_EXPORT Tensor cumsum(const Tensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT Tensor cumprod(const Tensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT Tensor nancumsum(const Tensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT Tensor nancumprod(const Tensor& x, std::optional<std::int64_t> axis = {});
TANDEM_EXPORT Tensor diff(const Tensor& a, int n = 1, std::int64_t axis = -1);
TANDEM_EXPORT Tensor trapezoid(const Tensor& y, const Tensor& x = {}, double dx = 1,
                               std::int64_t axis = -1);
TANDEM_EXPORT std::pair<Tensor, Tensor> moments(const Tensor& x, Axes axes, bool keepdims = false);
TANDEM_EXPORT Tensor corrcoef(const Tensor& x);
TANDEM_EXPORT Tensor correlate(const Tensor& x1, const Tensor& x2, StringView mode = "valid");
/// The numbers of values between equal edges, and the edges.
TANDEM_EXPORT std::pair<Tensor, Tensor> histogram(const Tensor& x, std::int64_t bins = 10);
TANDEM_EXPORT Tensor bincount(const Tensor& x, const Tensor& weights = {},
                              std::int64_t minlength = 0);
TANDEM_EXPORT Tensor segment_sum(const Tensor& data, const Tensor& segment_ids,
                                 std::optional<std::int64_t> num_segments = {});
TANDEM_EXPORT Tensor segment_max(const Tensor& data, const Tensor& segment_ids,
                                 std::optional<std::int64_t> num_segments = {});
TANDEM_EXPORT Tensor segment_min(const Tensor& data, const Tensor& segment_ids,
                                 std::optional<std::int64_t> num_segments = {});
TANDEM_EXPORT Tensor segment_prod(const Tensor& data, const Tensor& segment_ids,
                                  std::optional<std::int64_t> num_segments = {});

}  // namespace tandem::keras::ops
