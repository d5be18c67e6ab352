#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "tandem/core/error.h"
#include "tandem/keras/internal/promotion.h"
#include "tandem/keras/ops/arrays.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/diagonal_band_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/grid_ops.h"
#include "tandem/ops/histogram_ops.h"
#include "tandem/ops/loss_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/signal_functions.h"
#include "tandem/ops/sort_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::keras::ops {
namespace {

using keras::internal::in_float;

std::int64_t axis_of(const Tensor& x, std::int64_t axis) {
  return axis < 0 ? axis + x.rank() : axis;
}

Tensor vector(const std::vector<double>& values, DType dtype) {
  return cast(Tensor(values), dtype);
}

// All as one dtype.
std::vector<Tensor> alike(const std::vector<Tensor>& xs) {
  if (xs.empty()) throw InvalidArgumentError("ops: there is nothing to join.");
  DType together = xs.front().dtype();
  for (const Tensor& x : xs) together = keras::internal::promoted(together, x.dtype());
  std::vector<Tensor> all;
  for (const Tensor& x : xs) all.push_back(cast(x, together));
  return all;
}

}  // namespace

Tensor array(Operand x, std::optional<DType> dtype) {
  Tensor t = std::move(x).take();
  return dtype ? cast(t, *dtype) : t;
}
Tensor arange(Operand stop, std::optional<DType> dtype) {
  const Tensor t = tandem::arange(std::move(stop));
  return dtype ? cast(t, *dtype) : t;
}
Tensor arange(Operand start, Operand stop, Operand step, std::optional<DType> dtype) {
  const Tensor t = tandem::arange(std::move(start), std::move(stop), std::move(step));
  return dtype ? cast(t, *dtype) : t;
}
Tensor empty(const IntList& shape, DType dtype) { return zeros(shape, dtype); }
Tensor empty_like(const Tensor& x, std::optional<DType> dtype) { return zeros_like(x, dtype); }
Tensor identity(std::int64_t n, DType dtype) { return eye(n, {}, dtype); }

namespace {

std::vector<double> spaced(double start, double stop, std::int64_t num, bool endpoint) {
  std::vector<double> values;
  const double step =
      num > 1 || !endpoint ? (stop - start) / static_cast<double>(endpoint ? num - 1 : num) : 0;
  for (std::int64_t i = 0; i < num; ++i) values.push_back(start + step * static_cast<double>(i));
  return values;
}

}  // namespace

Tensor linspace(double start, double stop, std::int64_t num, bool endpoint, DType dtype) {
  return vector(spaced(start, stop, num, endpoint), dtype);
}
Tensor logspace(double start, double stop, std::int64_t num, bool endpoint, double base,
                DType dtype) {
  std::vector<double> values = spaced(start, stop, num, endpoint);
  for (double& v : values) v = std::pow(base, v);
  return vector(values, dtype);
}
Tensor geomspace(double start, double stop, std::int64_t num, bool endpoint, DType dtype) {
  if (start == 0 || stop == 0 || (start < 0) != (stop < 0)) {
    throw InvalidArgumentError("geomspace: start and stop must be of one sign and not zero.");
  }
  const double sign = start < 0 ? -1 : 1;
  std::vector<double> values =
      spaced(std::log10(std::abs(start)), std::log10(std::abs(stop)), num, endpoint);
  for (double& v : values) v = sign * std::pow(10.0, v);
  return vector(values, dtype);
}
std::vector<Tensor> meshgrid(const std::vector<Tensor>& x, StringView indexing) {
  return tandem::meshgrid(x, indexing);
}
Tensor tri(std::int64_t n, std::int64_t m, std::int64_t k, DType dtype) {
  if (m < 0) m = n;
  return tril(ones({n, m}, dtype), k);
}
Tensor vander(const Tensor& x, std::int64_t n, bool increasing) {
  if (n < 0) n = x.dim(0);
  std::vector<std::int64_t> powers(static_cast<std::size_t>(n));
  std::iota(powers.begin(), powers.end(), 0);
  if (!increasing) std::reverse(powers.begin(), powers.end());
  return pow(tandem::expand_dims(x, 1), cast(Tensor(powers), x.dtype()));
}

namespace {

template <class F>
Tensor window(std::int64_t n, F value) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i)
    values.push_back(n == 1 ? 1.0 : value(static_cast<double>(i), static_cast<double>(n - 1)));
  return vector(values, float32);
}

}  // namespace

Tensor bartlett(std::int64_t n) {
  return window(n, [](double i, double last) { return 1 - std::abs(2 * i / last - 1); });
}
Tensor blackman(std::int64_t n) {
  return window(n, [](double i, double last) {
    const double t = 2 * std::numbers::pi * i / last;
    return 0.42 - 0.5 * std::cos(t) + 0.08 * std::cos(2 * t);
  });
}
Tensor hamming(std::int64_t n) { return signal::hamming_window(n, false); }
Tensor hanning(std::int64_t n) { return signal::hann_window(n, false); }
Tensor kaiser(std::int64_t n, double beta) { return signal::kaiser_window(n, beta); }
Tensor one_hot(const Tensor& x, std::int64_t num_classes, std::int64_t axis, DType dtype) {
  return tandem::one_hot(cast(x, int64), num_classes, {.axis = axis, .dtype = dtype});
}
Tensor multi_hot(const Tensor& x, std::int64_t num_classes, std::int64_t axis, DType dtype) {
  const Tensor rows = reduce_max(one_hot(x, num_classes, -1, dtype),
                                 x.rank() > 1 ? static_cast<std::int64_t>(x.rank()) - 1 : 0);
  return axis == -1 ? rows : moveaxis(rows, -1, axis);
}
Tensor copy(const Tensor& x) { return tandem::identity(x); }

std::vector<std::int64_t> shape(const Tensor& x) { return x.partial_shape().dims(); }
Tensor size(const Tensor& x) { return tandem::size(x); }
Tensor reshape(const Tensor& x, const IntList& newshape) { return tandem::reshape(x, newshape); }
Tensor ravel(const Tensor& x) { return tandem::reshape(x, {-1}); }
Tensor transpose(const Tensor& x, const IntList& axes) { return tandem::transpose(x, axes); }
Tensor swapaxes(const Tensor& x, std::int64_t axis1, std::int64_t axis2) {
  std::vector<std::int64_t> perm(static_cast<std::size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[static_cast<std::size_t>(axis_of(x, axis1))],
            perm[static_cast<std::size_t>(axis_of(x, axis2))]);
  return tandem::transpose(x, perm);
}
Tensor moveaxis(const Tensor& x, std::int64_t source, std::int64_t destination) {
  std::vector<std::int64_t> perm;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis_of(x, source)) perm.push_back(i);
  }
  perm.insert(perm.begin() + axis_of(x, destination), axis_of(x, source));
  return tandem::transpose(x, perm);
}
Tensor expand_dims(const Tensor& x, std::int64_t axis) { return tandem::expand_dims(x, axis); }
Tensor squeeze(const Tensor& x, Axis axis) {
  return axis ? tandem::squeeze(x, {*axis}) : tandem::squeeze(x);
}
Tensor flip(const Tensor& x, Axis axis) {
  if (axis) return reverse(x, {*axis});
  std::vector<std::int64_t> all(static_cast<std::size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  return reverse(x, all);
}
Tensor fliplr(const Tensor& x) { return flip(x, 1); }
Tensor flipud(const Tensor& x) { return flip(x, 0); }
Tensor rot90(const Tensor& x, std::int64_t k, std::pair<std::int64_t, std::int64_t> axes) {
  const auto [a, b] = axes;
  switch (((k % 4) + 4) % 4) {
    case 0: return x;
    case 1: return swapaxes(flip(x, b), a, b);
    case 2: return flip(flip(x, a), b);
    default: return flip(swapaxes(x, a, b), b);
  }
}
Tensor roll(const Tensor& x, std::int64_t shift, Axis axis) {
  if (axis) return tandem::roll(x, shift, *axis);
  return tandem::reshape(tandem::roll(ravel(x), shift, 0), IntList(tandem::shape(x)));
}
Tensor repeat(const Tensor& x, std::int64_t repeats, Axis axis) {
  return tandem::repeat(x, repeats, axis);
}
Tensor tile(const Tensor& x, const IntList& repeats) {
  const auto known = repeats.known();
  if (known && static_cast<int>(known->size()) < x.rank()) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(x.rank()) - known->size(), 1);
    all.insert(all.end(), known->begin(), known->end());
    return tandem::tile(x, all);
  }
  return tandem::tile(x, repeats);
}
Tensor broadcast_to(const Tensor& x, const IntList& shape) {
  return tandem::broadcast_to(x, shape);
}
Tensor pad(const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& pad_width,
           StringView mode, double constant_values) {
  std::vector<std::int64_t> table;
  for (const auto& [before, after] : pad_width) {
    table.push_back(before);
    table.push_back(after);
  }
  PadMode how = PadMode::kConstant;
  if (mode == "reflect") {
    how = PadMode::kReflect;
  } else if (mode == "symmetric") {
    how = PadMode::kSymmetric;
  } else if (mode != "constant") {
    throw InvalidArgumentError(
        cat("pad: mode is \"constant\", \"reflect\" or \"symmetric\", not '", mode, "'."));
  }
  return tandem::pad(x, Tensor::from(table, {static_cast<std::int64_t>(pad_width.size()), 2}), how,
                     constant_values);
}
Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  Tensor m = x;
  if (axis_of(x, axis1) != x.rank() - 2 || axis_of(x, axis2) != x.rank() - 1)
    m = moveaxis(moveaxis(x, axis1, -1), axis_of(x, axis2) > axis_of(x, axis1) ? axis2 - 1 : axis2,
                 -1);
  return linalg::diag_part(m, {.lower = offset, .upper = offset});
}
Tensor diag(const Tensor& x, std::int64_t k) {
  return x.rank() == 1 ? linalg::diag(x, {.lower = k, .upper = k}) : diagonal(x, k);
}
Tensor diagflat(const Tensor& x, std::int64_t k) { return diag(ravel(x), k); }
Tensor tril(const Tensor& x, std::int64_t k) {
  if (k >= 0) return linalg::band_part(x, -1, k);
  return x - linalg::band_part(x, -k - 1, -1);
}
Tensor triu(const Tensor& x, std::int64_t k) {
  if (k <= 0) return linalg::band_part(x, -k, -1);
  return x - linalg::band_part(x, -1, k - 1);
}
Tensor view(const Tensor& x, DType dtype) { return bitcast(x, dtype); }
Tensor view_as_complex(const Tensor& x) {
  return tandem::complex(x[{ellipsis, 0}], x[{ellipsis, 1}]);
}
Tensor view_as_real(const Tensor& x) { return tandem::stack({math::real(x), math::imag(x)}, -1); }

Tensor concatenate(const std::vector<Tensor>& xs, std::int64_t axis) {
  return concat(alike(xs), axis);
}
Tensor append(const Tensor& x1, const Tensor& x2, Axis axis) {
  if (axis) return concatenate({x1, x2}, *axis);
  return concatenate({ravel(x1), ravel(x2)});
}
Tensor stack(const std::vector<Tensor>& x, std::int64_t axis) {
  return tandem::stack(alike(x), axis);
}
namespace {
Tensor with_rank(const Tensor& x, int rank) {
  if (x.rank() >= rank) return x;
  if (rank == 1) return tandem::reshape(x, {1});
  if (rank == 2) return x.rank() == 0 ? tandem::reshape(x, {1, 1}) : tandem::expand_dims(x, 0);
  return tandem::expand_dims(with_rank(x, 2), 2);
}
std::vector<Tensor> with_rank(const std::vector<Tensor>& xs, int rank) {
  std::vector<Tensor> all;
  for (const Tensor& x : xs) all.push_back(with_rank(x, rank));
  return all;
}
}  // namespace
Tensor hstack(const std::vector<Tensor>& xs) {
  const auto all = with_rank(xs, 1);
  return concatenate(all, all.front().rank() == 1 ? 0 : 1);
}
// Vectors are joined to one vector, as Keras' TensorFlow backend does.
Tensor vstack(const std::vector<Tensor>& xs) { return concatenate(xs, 0); }
Tensor dstack(const std::vector<Tensor>& xs) { return concatenate(with_rank(xs, 3), 2); }
std::vector<Tensor> split(const Tensor& x, std::int64_t sections, std::int64_t axis) {
  return tandem::split(x, sections, axis);
}
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& indices,
                          std::int64_t axis) {
  std::vector<std::int64_t> sizes;
  std::int64_t begin = 0;
  for (const std::int64_t index : indices) {
    sizes.push_back(index - begin);
    begin = index;
  }
  sizes.push_back(-1);
  return tandem::split(x, IntList(sizes), axis);
}
std::vector<Tensor> array_split(const Tensor& x, std::int64_t sections, std::int64_t axis) {
  const std::int64_t size = x.dim(static_cast<int>(axis));
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < sections; ++i)
    sizes.push_back(size / sections + (i < size % sections ? 1 : 0));
  return tandem::split(x, IntList(sizes), axis);
}
std::vector<Tensor> hsplit(const Tensor& x, std::int64_t sections) {
  return ops::split(x, sections, x.rank() == 1 ? 0 : 1);
}
std::vector<Tensor> vsplit(const Tensor& x, std::int64_t sections) {
  return ops::split(x, sections, 0);
}
std::vector<Tensor> dsplit(const Tensor& x, std::int64_t sections) {
  return ops::split(x, sections, 2);
}
std::vector<Tensor> unstack(const Tensor& x, Axis num, std::int64_t axis) {
  return tandem::unstack(x, num, axis);
}

namespace {
// Negative indices from the end.
Tensor counted(const Tensor& indices, const Tensor& size) {
  const Tensor n = cast(size, indices.dtype());
  return tandem::where(tandem::less(indices, 0), indices + n, indices);
}
}  // namespace
Tensor take(const Tensor& x, const Tensor& indices, Axis axis) {
  const Tensor flat = axis ? x : ravel(x);
  const std::int64_t at = axis_of(flat, axis.value_or(0));
  const Tensor i = is_integer(indices.dtype()) ? indices : cast(indices, int32);
  return gather(flat, counted(i, tandem::shape(flat)[at]), at);
}
Tensor take_along_axis(const Tensor& x, const Tensor& indices, Axis axis) {
  if (!axis) return take_along_axis(ravel(x), ravel(indices), 0);
  const std::int64_t at = axis_of(x, *axis), last = x.rank() - 1;
  const Tensor rows = at == last ? x : swapaxes(x, at, last);
  Tensor i = at == last ? indices : swapaxes(indices, at, last);
  i = counted(i, tandem::shape(rows)[-1]);
  const Tensor picked = x.rank() == 1 ? gather(rows, i) : gather(rows, i, last, last);
  return at == last ? picked : swapaxes(picked, at, last);
}
Tensor get_item(const Tensor& x, const Index& key) { return x[key]; }
Tensor slice(const Tensor& x, const IntList& start, const IntList& shape) {
  return tandem::slice(x, start, shape);
}
Tensor slice_update(const Tensor& x, const IntList& start, const Tensor& updates) {
  // The places of the updates, one for each of their elements.
  const Tensor sizes = tandem::shape(updates);
  std::vector<Tensor> ranges;
  const Tensor begin = cast(start.tensor(), int32);
  for (int axis = 0; axis < x.rank(); ++axis) ranges.push_back(range(sizes[axis]) + begin[axis]);
  const Tensor places = tandem::stack(tandem::meshgrid(ranges, "ij"), -1);
  return tensor_scatter_nd_update(x, places, cast(updates, x.dtype()));
}
Tensor scatter(const Tensor& indices, const Tensor& values, const IntList& shape) {
  return scatter_nd(indices, values, shape);
}
Tensor scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return tensor_scatter_nd_update(x, indices, cast(updates, x.dtype()));
}
std::vector<Tensor> nonzero(const Tensor& x) {
  const Tensor places = cast(tandem::where(cast(x, boolean)), int32);
  return tandem::unstack(places, x.rank(), 1);
}
std::vector<Tensor> unravel_index(const Tensor& indices, const std::vector<std::int64_t>& shape) {
  const Tensor flat = ravel(indices);
  const Tensor all = tandem::unravel_index(flat, cast(Tensor(shape), flat.dtype()));
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < shape.size(); ++i)
    parts.push_back(tandem::reshape(all[i], IntList(tandem::shape(indices))));
  return parts;
}
Tensor unique(const Tensor& x) { return tandem::sort(tandem::unique(ravel(x)).y); }
Tensor isin(const Tensor& x1, const Tensor& x2, bool invert) {
  const Tensor found =
      reduce_any(tandem::equal(tandem::expand_dims(x1, -1), cast(ravel(x2), x1.dtype())), -1);
  return invert ? tandem::logical_not(found) : found;
}
Tensor sort(const Tensor& x, std::int64_t axis) {
  if (x.dtype() == boolean) return cast(tandem::sort(cast(x, int8), axis), boolean);
  return tandem::sort(x, axis);
}
Tensor argsort(const Tensor& x, std::int64_t axis) {
  return tandem::argsort(x.dtype() == boolean ? cast(x, uint8) : x, axis);
}
Tensor argpartition(const Tensor& x, std::int64_t, std::int64_t axis) {
  return ops::argsort(x, axis);
}
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, StringView side) {
  if (side != "left" && side != "right") {
    throw InvalidArgumentError(
        cat("searchsorted: side is \"left\" or \"right\", not '", side, "'."));
  }
  return tandem::searchsorted(sorted_sequence, cast(values, sorted_sequence.dtype()),
                              side == "right");
}
Tensor digitize(const Tensor& x, const Tensor& bins) {
  const Tensor edges = cast(bins, float32);
  return tandem::reshape(tandem::searchsorted(edges, cast(ravel(x), float32), true),
                         IntList(tandem::shape(x)));
}
std::pair<Tensor, Tensor> top_k(const Tensor& x, std::int64_t k, bool sorted) {
  const auto top = tandem::top_k(x, k, sorted);
  return {top.values, top.indices};
}
Tensor in_top_k(const Tensor& targets, const Tensor& predictions, std::int64_t k) {
  return nn::in_top_k(targets, predictions, k);
}
Tensor extract_sequences(const Tensor& x, std::int64_t length, std::int64_t stride) {
  return signal::frame(x, length, stride);
}
Tensor stop_gradient(const Tensor& x) { return tandem::stop_gradient(x); }

}  // namespace tandem::keras::ops
