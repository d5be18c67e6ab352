#include "tandem/ops/fft_nd.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/fft_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::signal {
namespace {

struct Plan {
  std::vector<std::int64_t> axes;
  std::vector<std::int64_t> lengths;  // of the transform, which for irfftnd is the result's
  double scale = 1;                   // of the result
};

// `known_last`: the length of the last axis where none is given.
Plan plan_of(const char* what, const Tensor& x, const IntList& fft_length, const IntList& axes,
             std::string_view norm, bool inverse, bool half_last) {
  const int rank = x.rank();
  if (rank < 0) throw InvalidArgumentError(cat("td::signal::", what, ": the rank must be known."));
  Plan plan;
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) plan.axes.push_back(i);
  } else {
    plan.axes = axes.known().value();
  }
  for (std::int64_t& axis : plan.axes) {
    if (axis < -rank || axis >= rank) {
      throw InvalidArgumentError(
          cat("td::signal::", what, ": there is no axis ", axis, " in shape ", x.partial_shape()));
    }
    if (axis < 0) axis += rank;
  }
  if (fft_length.empty()) {
    for (const std::int64_t axis : plan.axes) plan.lengths.push_back(x.dim(static_cast<int>(axis)));
    if (half_last && !plan.lengths.empty())
      plan.lengths.back() = std::max<std::int64_t>(0, 2 * (plan.lengths.back() - 1));
  } else {
    plan.lengths = fft_length.known().value();
  }
  if (plan.lengths.size() != plan.axes.size() || plan.axes.empty()) {
    throw InvalidArgumentError(cat("td::signal::", what, ": ", plan.lengths.size(), " lengths for ",
                                   plan.axes.size(), " axes; one each, and one at least."));
  }
  double count = 1;
  for (const std::int64_t n : plan.lengths) {
    if (n < 0) {
      throw InvalidArgumentError(cat("td::signal::", what,
                                     ": the sizes of the axes must be known, ", "but the shape is ",
                                     x.partial_shape(), "."));
    }
    count *= static_cast<double>(n);
  }
  if (norm == "ortho") {
    plan.scale = inverse ? std::sqrt(count) : 1 / std::sqrt(count);
  } else if (norm == "forward") {
    plan.scale = inverse ? count : 1 / count;
  } else if (norm != "backward" && !norm.empty()) {
    throw InvalidArgumentError(cat("td::signal::", what,
                                   ": norm is \"backward\", \"ortho\" or \"forward\", not \"", norm,
                                   "\"."));
  }
  return plan;
}

std::vector<std::int64_t> exchange(int rank, std::int64_t axis) {
  std::vector<std::int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<std::size_t>(axis)], perm.back());
  return perm;
}

// What `transform` makes of an axis put last.
template <class F>
Tensor along(const Tensor& x, std::int64_t axis, const F& transform) {
  const int rank = x.rank();
  if (axis == rank - 1) return transform(x);
  const auto perm = exchange(rank, axis);
  return transpose(transform(transpose(x, perm)), perm);
}

// The last axis cut or filled with zeros.
Tensor fitted(const Tensor& x, std::int64_t length) {
  const std::int64_t have = x.dim(-1);
  if (have == length) return x;
  if (have > length) return x[{ellipsis, Slice(0, length)}];
  std::vector<std::int64_t> paddings(2 * static_cast<std::size_t>(x.rank()), 0);
  paddings.back() = length - have;
  return pad(x, Tensor::from(paddings, {x.rank(), 2}));
}

Tensor scaled(const Tensor& x, double scale) {
  return scale == 1 ? x : x * cast(Tensor(std::vector<double>{scale}), x.dtype());
}

// Axes other than the last one of the plan.
Tensor complex_axes(Tensor x, const Plan& plan, std::size_t count, Tensor (*transform)(Tensor)) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t length = plan.lengths[i];
    x = along(x, plan.axes[i], [&](const Tensor& t) { return transform(fitted(t, length)); });
  }
  return x;
}

}  // namespace

Tensor fftnd(const Tensor& input, const IntList& fft_length, const IntList& axes, StringView norm) {
  const Plan plan = plan_of("fftnd", input, fft_length, axes, norm, false, false);
  return scaled(complex_axes(input, plan, plan.axes.size(), fft), plan.scale);
}

Tensor ifftnd(const Tensor& input, const IntList& fft_length, const IntList& axes,
              StringView norm) {
  const Plan plan = plan_of("ifftnd", input, fft_length, axes, norm, true, false);
  return scaled(complex_axes(input, plan, plan.axes.size(), ifft), plan.scale);
}

Tensor rfftnd(const Tensor& input, const IntList& fft_length, const IntList& axes,
              StringView norm) {
  const Plan plan = plan_of("rfftnd", input, fft_length, axes, norm, false, false);
  const Tensor half = along(input, plan.axes.back(),
                            [&](const Tensor& t) { return rfft(t, {plan.lengths.back()}); });
  return scaled(complex_axes(half, plan, plan.axes.size() - 1, fft), plan.scale);
}

Tensor irfftnd(const Tensor& input, const IntList& fft_length, const IntList& axes,
               StringView norm) {
  const Plan plan = plan_of("irfftnd", input, fft_length, axes, norm, true, true);
  const Tensor half = complex_axes(input, plan, plan.axes.size() - 1, ifft);
  return scaled(along(half, plan.axes.back(),
                      [&](const Tensor& t) { return irfft(t, {plan.lengths.back()}); }),
                plan.scale);
}

}  // namespace tandem::signal
