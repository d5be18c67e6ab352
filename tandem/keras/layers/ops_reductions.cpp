#include <limits>

#include "tandem/core/error.h"
#include "tandem/keras/internal/promotion.h"
#include "tandem/keras/ops/arrays.h"
#include "tandem/keras/ops/reductions.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/histogram_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/segment_ops.h"
#include "tandem/ops/sort_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::ops {
namespace {

using keras::internal::in_float;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Sums of small integers are int32 (uint32) in Keras.
Tensor wide(const Tensor& x) {
  switch (x.dtype()) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kInt16: return cast(x, int32);
    case DType::kUint8:
    case DType::kUint16: return cast(x, uint32);
    default: return x;
  }
}
Tensor without_nan(const Tensor& x, double filler) {
  return is_floating(x.dtype()) ? tandem::where(math::is_nan(x), filler, x) : x;
}
Tensor is_number(const Tensor& x) {
  return is_floating(x.dtype()) ? tandem::logical_not(math::is_nan(x)) : ones_like(x, boolean);
}

}  // namespace

Tensor all(const Tensor& x, Axes axis, bool keepdims) {
  return reduce_all(cast(x, boolean), axis, keepdims);
}
Tensor any(const Tensor& x, Axes axis, bool keepdims) {
  return reduce_any(cast(x, boolean), axis, keepdims);
}
Tensor max(const Tensor& x, Axes axis, bool keepdims) {
  return x.dtype() == boolean ? reduce_any(x, axis, keepdims) : reduce_max(x, axis, keepdims);
}
Tensor min(const Tensor& x, Axes axis, bool keepdims) {
  return x.dtype() == boolean ? reduce_all(x, axis, keepdims) : reduce_min(x, axis, keepdims);
}
Tensor amax(const Tensor& x, Axes axis, bool keepdims) { return max(x, axis, keepdims); }
Tensor amin(const Tensor& x, Axes axis, bool keepdims) { return min(x, axis, keepdims); }
Tensor mean(const Tensor& x, Axes axis, bool keepdims) {
  return reduce_mean(in_float(x), axis, keepdims);
}
Tensor median(const Tensor& x, Axes axis, bool keepdims) {
  return quantile(x, Tensor(0.5f), axis, "linear", keepdims);
}
Tensor prod(const Tensor& x, Axes axis, bool keepdims) {
  return reduce_prod(wide(x), axis, keepdims);
}
Tensor ptp(const Tensor& x, Axes axis, bool keepdims) {
  return reduce_max(x, axis, keepdims) - reduce_min(x, axis, keepdims);
}
Tensor std(const Tensor& x, Axes axis, bool keepdims) {
  return math::reduce_std(in_float(x), axis, keepdims);
}
Tensor sum(const Tensor& x, Axes axis, bool keepdims) {
  return reduce_sum(wide(x), axis, keepdims);
}
Tensor var(const Tensor& x, Axes axis, bool keepdims) {
  return math::reduce_variance(in_float(x), axis, keepdims);
}
Tensor logsumexp(const Tensor& x, Axes axis, bool keepdims) {
  return reduce_logsumexp(in_float(x), axis, keepdims);
}

namespace {
// NaN where nothing counts.
Tensor or_nan(const Tensor& result, const Tensor& x, const Axes& axis, bool keepdims) {
  if (!is_floating(x.dtype())) return result;
  return tandem::where(reduce_any(is_number(x), axis, keepdims), result,
                       std::numeric_limits<double>::quiet_NaN());
}
}  // namespace
Tensor nanmax(const Tensor& x, Axes axis, bool keepdims) {
  return or_nan(reduce_max(without_nan(x, -kInfinity), axis, keepdims), x, axis, keepdims);
}
Tensor nanmin(const Tensor& x, Axes axis, bool keepdims) {
  return or_nan(reduce_min(without_nan(x, kInfinity), axis, keepdims), x, axis, keepdims);
}
Tensor nansum(const Tensor& x, Axes axis, bool keepdims) {
  return sum(without_nan(x, 0), axis, keepdims);
}
Tensor nanprod(const Tensor& x, Axes axis, bool keepdims) {
  return prod(without_nan(x, 1), axis, keepdims);
}
Tensor nanmean(const Tensor& given, Axes axis, bool keepdims) {
  const Tensor x = in_float(given);
  return nansum(x, axis, keepdims) / reduce_sum(cast(is_number(x), x.dtype()), axis, keepdims);
}
Tensor nanvar(const Tensor& given, Axes axis, bool keepdims) {
  const Tensor x = in_float(given);
  return nanmean(square(x - nanmean(x, axis, true)), axis, keepdims);
}
Tensor nanstd(const Tensor& x, Axes axis, bool keepdims) { return sqrt(nanvar(x, axis, keepdims)); }
Tensor nanmedian(const Tensor& x, Axes axis, bool keepdims) {
  return nanquantile(x, Tensor(0.5f), axis, "linear", keepdims);
}
Tensor count_nonzero(const Tensor& x, Axes axis) {
  return math::count_nonzero(x, axis, false, int32);
}
Tensor average(const Tensor& given, Axes axis, const Tensor& weights) {
  const Tensor x = in_float(given);
  if (!weights.defined()) return reduce_mean(x, axis);
  Tensor w = cast(weights, x.dtype());
  if (w.rank() == 1 && x.rank() > 1 && axis.list() && axis.list()->size() == 1) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()), 1);
    const std::int64_t at = axis.list()->front();
    dims[static_cast<std::size_t>(at < 0 ? at + x.rank() : at)] = -1;
    w = tandem::reshape(w, dims);
  }
  return reduce_sum(x * w, axis) / reduce_sum(w + zeros_like(x), axis);
}

namespace {

// The axes moved to the end and flattened into one.
Tensor rows_of(const Tensor& x, const Axes& axis) {
  if (axis.all()) return tandem::reshape(x, {-1});
  const int rank = x.rank();
  std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
  for (const std::int64_t a : *axis.list())
    reduced[static_cast<std::size_t>(a < 0 ? a + rank : a)] = true;
  std::vector<std::int64_t> perm, kept;
  for (int i = 0; i < rank; ++i) {
    if (!reduced[static_cast<std::size_t>(i)]) perm.push_back(i);
  }
  kept = perm;
  for (int i = 0; i < rank; ++i) {
    if (reduced[static_cast<std::size_t>(i)]) perm.push_back(i);
  }
  const Tensor moved = tandem::transpose(x, perm);
  const Tensor leading = tandem::shape(moved)[Slice(none, static_cast<std::int64_t>(kept.size()))];
  return tandem::reshape(moved, IntList(concat({leading, Tensor{-1}}, 0)));
}

Tensor restored(Tensor y, const Tensor& x, const Axes& axis, bool keepdims, int leading) {
  if (!keepdims) return y;
  const int rank = x.rank();
  for (int i = 0; i < rank; ++i) {
    bool is_reduced = axis.all();
    if (!is_reduced) {
      for (const std::int64_t a : *axis.list())
        is_reduced = is_reduced || (a < 0 ? a + rank : a) == i;
    }
    if (is_reduced) y = tandem::expand_dims(y, i + leading);
  }
  return y;
}

Tensor quantile_of(const Tensor& given, const Tensor& q, const Axes& axis, std::string_view method,
                   bool keepdims, bool skip_nan) {
  const Tensor x = in_float(given);
  Tensor rows = rows_of(x, axis);
  // NaN sorts last, as infinity.
  const Tensor numbers = is_number(rows);
  rows = tandem::sort(tandem::where(numbers, rows, kInfinity));
  const Tensor size = tandem::shape(rows)[-1];
  const Tensor counts = skip_nan ? reduce_sum(cast(numbers, x.dtype()), -1)
                                 : cast(size, x.dtype()) * reduce_max(ones_like(rows), -1);
  const auto at = [&](const Tensor& fraction) {
    const Tensor place = cast(fraction, x.dtype()) * (counts - 1.0);
    const Tensor low = tandem::floor(place), high = math::ceil(place);
    const auto pick = [&](const Tensor& where) {
      const Tensor i = tandem::expand_dims(cast(tandem::maximum(where, 0.0), int32), -1);
      return tandem::squeeze(take_along_axis(rows, i, -1), {-1});
    };
    Tensor value;
    if (method == "lower") {
      value = pick(low);
    } else if (method == "higher") {
      value = pick(high);
    } else if (method == "nearest") {
      value = pick(tandem::round(place));
    } else {
      const Tensor a = pick(low), b = pick(high);
      value = method == "midpoint" ? (a + b) / 2.0 : a + (b - a) * (place - low);
    }
    const Tensor fine = skip_nan ? counts > 0.0 : reduce_all(numbers, -1);
    return tandem::where(fine, value, std::numeric_limits<double>::quiet_NaN());
  };
  if (q.rank() == 0) return restored(at(q), x, axis, keepdims, 0);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < q.dim(0); ++i) parts.push_back(at(q[i]));
  return restored(tandem::stack(parts), x, axis, keepdims, 1);
}

}  // namespace

Tensor quantile(const Tensor& x, const Tensor& q, Axes axis, StringView method, bool keepdims) {
  return quantile_of(x, q, axis, method, keepdims, false);
}
Tensor percentile(const Tensor& x, const Tensor& q, Axes axis, StringView method, bool keepdims) {
  return quantile(x, in_float(q) / 100.0, axis, method, keepdims);
}
Tensor nanquantile(const Tensor& x, const Tensor& q, Axes axis, StringView method, bool keepdims) {
  return quantile_of(x, q, axis, method, keepdims, true);
}
Tensor nanpercentile(const Tensor& x, const Tensor& q, Axes axis, StringView method,
                     bool keepdims) {
  return nanquantile(x, in_float(q) / 100.0, axis, method, keepdims);
}

namespace {
template <class F>
Tensor place_of(const Tensor& given, std::optional<std::int64_t> axis, bool keepdims, F f) {
  Tensor x = given.dtype() == boolean ? cast(given, int32) : given;
  if (!axis) {
    Tensor y = f(tandem::reshape(x, {-1}), std::int64_t{0});
    if (!keepdims) return y;
    return tandem::reshape(y, std::vector<std::int64_t>(static_cast<std::size_t>(x.rank()), 1));
  }
  Tensor y = f(x, *axis);
  return keepdims ? tandem::expand_dims(y, *axis) : y;
}
}  // namespace
Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return place_of(x, axis, keepdims,
                  [](const Tensor& t, std::int64_t a) { return tandem::argmax(t, a, int32); });
}
Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return place_of(x, axis, keepdims,
                  [](const Tensor& t, std::int64_t a) { return tandem::argmin(t, a, int32); });
}
Tensor nanargmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return argmax(without_nan(x, -kInfinity), axis, keepdims);
}
Tensor nanargmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return argmin(without_nan(x, kInfinity), axis, keepdims);
}
namespace {
Tensor along(const Tensor& x, std::optional<std::int64_t> axis) {
  return axis ? x : tandem::reshape(x, {-1});
}
}  // namespace
Tensor cumsum(const Tensor& x, std::optional<std::int64_t> axis) {
  return tandem::cumsum(along(x.dtype() == boolean ? cast(x, int32) : x, axis), axis.value_or(0));
}
Tensor cumprod(const Tensor& x, std::optional<std::int64_t> axis) {
  return math::cumprod(along(x.dtype() == boolean ? cast(x, int32) : x, axis), axis.value_or(0));
}
Tensor nancumsum(const Tensor& x, std::optional<std::int64_t> axis) {
  return cumsum(without_nan(x, 0), axis);
}
Tensor nancumprod(const Tensor& x, std::optional<std::int64_t> axis) {
  return cumprod(without_nan(x, 1), axis);
}
Tensor diff(const Tensor& a, int n, std::int64_t axis) {
  Tensor x = a;
  for (int i = 0; i < n; ++i) {
    const Tensor last = moveaxis(x, axis, -1);
    const Tensor d =
        last.dtype() == boolean
            ? tandem::not_equal(last[{ellipsis, Slice(1, none)}], last[{ellipsis, Slice(none, -1)}])
            : last[{ellipsis, Slice(1, none)}] - last[{ellipsis, Slice(none, -1)}];
    x = moveaxis(d, -1, axis);
  }
  return x;
}
Tensor trapezoid(const Tensor& given, const Tensor& x, double dx, std::int64_t axis) {
  const Tensor y = moveaxis(in_float(given), axis, -1);
  const Tensor heights = (y[{ellipsis, Slice(1, none)}] + y[{ellipsis, Slice(none, -1)}]) / 2.0;
  if (!x.defined()) return reduce_sum(heights, -1) * dx;
  return reduce_sum(heights * diff(cast(x, y.dtype()), 1, -1), -1);
}
std::pair<Tensor, Tensor> moments(const Tensor& x, Axes axes, bool keepdims) {
  return {mean(x, axes, keepdims), var(x, axes, keepdims)};
}
Tensor corrcoef(const Tensor& given) {
  Tensor x = in_float(given);
  if (x.rank() == 1) return tandem::Tensor(1.0f);
  x = x - reduce_mean(x, -1, true);
  const Tensor c = matmul(x, x, {.transpose_b = true});
  const Tensor d = sqrt(reduce_sum(square(x), -1));
  return c / (tandem::expand_dims(d, 0) * tandem::expand_dims(d, 1));
}
Tensor correlate(const Tensor& a, const Tensor& b, StringView mode) {
  const auto [x, y] = keras::internal::promote(a, b);
  const Tensor u = in_float(x), v = in_float(y);
  const std::int64_t n = u.dim(0), m = v.dim(0);
  // Every shift, of which the mode keeps some.
  const Tensor padded = ops::pad(u, {{m - 1, m - 1}});
  std::vector<std::int32_t> places;
  for (std::int64_t i = 0; i < n + m - 1; ++i) {
    for (std::int64_t j = 0; j < m; ++j) places.push_back(static_cast<std::int32_t>(i + j));
  }
  const Tensor full_result =
      reduce_sum(gather(padded, Tensor::from(places, {n + m - 1, m})) * v, 1);
  if (mode == "full") return full_result;
  const std::int64_t length = mode == "same" ? std::max(n, m) : std::max(n, m) - std::min(n, m) + 1;
  const std::int64_t begin = mode == "same" ? (n + m - 1 - length) / 2 : std::min(n, m) - 1;
  return full_result[Slice(begin, begin + length)];
}
std::pair<Tensor, Tensor> histogram(const Tensor& given, std::int64_t bins) {
  const Tensor x = in_float(tandem::reshape(given, {-1}));
  const Tensor low = reduce_min(x), high = reduce_max(x);
  const Tensor edges = tandem::linspace(low, high, bins + 1);
  const Tensor bin =
      tandem::minimum(tandem::searchsorted(edges, x, true) - 1, static_cast<int>(bins - 1));
  return {math::unsorted_segment_sum(ones_like(bin), bin, static_cast<int>(bins)), edges};
}
Tensor bincount(const Tensor& x, const Tensor& weights, std::int64_t minlength) {
  const Tensor ids = cast(x, int32);
  const std::int64_t size =
      std::max<std::int64_t>(minlength, reduce_max(ids).item<std::int64_t>() + 1);
  return math::bincount(ids, size, weights, weights.defined() ? weights.dtype() : int32);
}
namespace {
Tensor segments(const Tensor& ids, std::optional<std::int64_t> given) {
  if (given) return Tensor(static_cast<int>(*given));
  return cast(reduce_max(ids) + 1, int32);
}
}  // namespace
Tensor segment_sum(const Tensor& data, const Tensor& ids, std::optional<std::int64_t> n) {
  return math::unsorted_segment_sum(data, ids, segments(ids, n));
}
Tensor segment_max(const Tensor& data, const Tensor& ids, std::optional<std::int64_t> n) {
  return math::unsorted_segment_max(data, ids, segments(ids, n));
}
Tensor segment_min(const Tensor& data, const Tensor& ids, std::optional<std::int64_t> n) {
  return math::unsorted_segment_min(data, ids, segments(ids, n));
}
Tensor segment_prod(const Tensor& data, const Tensor& ids, std::optional<std::int64_t> n) {
  return math::unsorted_segment_prod(data, ids, segments(ids, n));
}

}  // namespace tandem::keras::ops
