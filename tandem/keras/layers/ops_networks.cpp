#include <cmath>

#include "tandem/core/error.h"
#include "tandem/keras/internal/promotion.h"
#include "tandem/keras/ops/arrays.h"
#include "tandem/keras/ops/elementwise.h"
#include "tandem/keras/ops/networks.h"
#include "tandem/keras/ops/reductions.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/clip_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/complex_ops.h"
#include "tandem/ops/ctc_ops.h"
#include "tandem/ops/diagonal_ops.h"
#include "tandem/ops/fft_ops.h"
#include "tandem/ops/histogram_ops.h"
#include "tandem/ops/loss_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/signal_functions.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::keras::ops {
namespace {

using keras::internal::in_float;

std::string upper(std::string_view padding) {
  if (padding == "valid") return "VALID";
  if (padding == "same") return "SAME";
  throw InvalidArgumentError(cat("padding is \"valid\" or \"same\", not '", padding, "'."));
}

std::size_t spatial(const Tensor& x) {
  if (x.rank() < 3 || x.rank() > 5) {
    throw InvalidArgumentError(cat("ops: the inputs must have rank 3, 4 or 5, but their shape is ",
                                   x.partial_shape(), "."));
  }
  return static_cast<std::size_t>(x.rank()) - 2;
}

}  // namespace

Tensor matmul(const Tensor& x1, const Tensor& x2) {
  const auto [a, b] = keras::internal::promote(x1, x2);
  if (a.rank() == 1 && b.rank() == 1) return reduce_sum(a * b);
  if (a.rank() == 1) return tandem::squeeze(tandem::matmul(tandem::expand_dims(a, 0), b), {-2});
  if (b.rank() == 1) return tandem::squeeze(tandem::matmul(a, tandem::expand_dims(b, 1)), {-1});
  return tandem::matmul(a, b);
}
Tensor dot(const Tensor& x1, const Tensor& x2) {
  const auto [a, b] = keras::internal::promote(x1, x2);
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  if (b.rank() == 1) return tensordot(a, b, {-1}, {-1});
  return tensordot(a, b, {-1}, {-2});
}
Tensor vdot(const Tensor& x1, const Tensor& x2) {
  const auto [a, b] = keras::internal::promote(x1, x2);
  return reduce_sum(math::conj(ravel(a)) * ravel(b));
}
Tensor inner(const Tensor& x1, const Tensor& x2) {
  const auto [a, b] = keras::internal::promote(x1, x2);
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  return tensordot(a, b, {-1}, {-1});
}
Tensor outer(const Tensor& x1, const Tensor& x2) {
  const auto [a, b] = keras::internal::promote(x1, x2);
  return tandem::reshape(a, {-1, 1}) * ravel(b);
}
Tensor kron(const Tensor& x1, const Tensor& x2) {
  const auto [a, b] = keras::internal::promote(x1, x2);
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> left, right, product;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t m = ia < 0 ? 1 : a.dim(ia), n = ib < 0 ? 1 : b.dim(ib);
    left.insert(left.end(), {m, 1});
    right.insert(right.end(), {1, n});
    product.push_back(m * n);
  }
  return tandem::reshape(tandem::reshape(a, left) * tandem::reshape(b, right), product);
}
Tensor cross(const Tensor& x1, const Tensor& x2) {
  const auto [a, b] = keras::internal::promote(x1, x2);
  return linalg::cross(a, b);
}
Tensor trace(const Tensor& x, std::int64_t offset) { return reduce_sum(diagonal(x, offset), -1); }
Tensor cdist(const Tensor& x1, const Tensor& x2, double p) {
  const auto [a, b] = keras::internal::promote(x1, x2);
  const Tensor d = tandem::abs(tandem::expand_dims(a, -2) - tandem::expand_dims(b, -3));
  if (p == 1) return reduce_sum(d, -1);
  if (p == 2) return tandem::sqrt(reduce_sum(tandem::square(d), -1));
  return tandem::pow(reduce_sum(tandem::pow(d, p), -1), 1 / p);
}

Tensor cholesky(const Tensor& x, bool upper) {
  const Tensor l = linalg::cholesky(x);
  return upper ? linalg::adjoint(l) : l;
}
Tensor cholesky_inverse(const Tensor& x, bool upper) {
  const Tensor l = upper ? linalg::adjoint(x) : x;
  return linalg::cholesky_solve(
      l, tandem::broadcast_to(eye(x.dim(-1), {}, x.dtype()), IntList(tandem::shape(x))));
}
std::pair<Tensor, Tensor> lu_factor(const Tensor& x) {
  const auto f = linalg::lu(x);
  return {f.lu, f.p};
}
std::pair<Tensor, Tensor> qr(const Tensor& x, StringView mode) {
  const auto f = linalg::qr(x, mode == "complete");
  return {f.q, f.r};
}
std::vector<Tensor> svd(const Tensor& x, bool full_matrices) {
  const auto f = linalg::svd(x, full_matrices);
  return {f.u, f.s, linalg::adjoint(f.v)};
}
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool lower) {
  if (b.rank() == a.rank() - 1) {
    return tandem::squeeze(linalg::triangular_solve(a, tandem::expand_dims(b, -1), lower), {-1});
  }
  return linalg::triangular_solve(a, b, lower);
}
Tensor norm(const Tensor& x, NormOrder ord, Axes axis, bool keepdims) {
  return linalg::norm(in_float(x), ord, std::move(axis), keepdims);
}
Tensor normalize(const Tensor& given, std::int64_t axis, double order, double epsilon) {
  const Tensor x = in_float(given);
  if (order == 2) {
    return x * math::rsqrt(
                   tandem::maximum(reduce_sum(tandem::square(x), axis, true), epsilon * epsilon));
  }
  return x / tandem::maximum(linalg::norm(x, order, axis, true), epsilon);
}
Tensor polar(const Tensor& abs, const Tensor& angle) {
  return tandem::complex(abs * tandem::cos(angle), abs * tandem::sin(angle));
}

namespace {
Tensor joined(const ComplexParts& x) { return tandem::complex(x.first, x.second); }
ComplexParts apart(const Tensor& x) { return {math::real(x), math::imag(x)}; }
}  // namespace
ComplexParts fft(const ComplexParts& x) { return apart(signal::fft(joined(x))); }
ComplexParts fft2(const ComplexParts& x) { return apart(signal::fft2d(joined(x))); }
ComplexParts ifft2(const ComplexParts& x) { return apart(signal::ifft2d(joined(x))); }
ComplexParts rfft(const Tensor& x, std::optional<std::int64_t> n) {
  return apart(signal::rfft(x, n ? IntList{*n} : IntList{}));
}
Tensor irfft(const ComplexParts& x, std::optional<std::int64_t> n) {
  return signal::irfft(joined(x), n ? IntList{*n} : IntList{});
}
namespace {
// A window of the sequence's length, in the middle of the transform's.
Tensor window_of(std::string_view name, std::int64_t length, std::int64_t fft_length) {
  Tensor w;
  if (name == "hann") {
    w = signal::hann_window(length);
  } else if (name == "hamming") {
    w = signal::hamming_window(length);
  } else if (name.empty()) {
    w = ones({length});
  } else {
    throw InvalidArgumentError(
        cat("stft: window is \"hann\", \"hamming\" or none, not '", name, "'."));
  }
  const std::int64_t before = (fft_length - length) / 2;
  return ops::pad(w, {{before, fft_length - length - before}});
}
}  // namespace
ComplexParts stft(const Tensor& given, std::int64_t length, std::int64_t stride,
                  std::int64_t fft_length, StringView window, bool center) {
  Tensor x = given;
  if (center) {
    std::vector<std::pair<std::int64_t, std::int64_t>> width(static_cast<std::size_t>(x.rank()),
                                                             {0, 0});
    width.back() = {fft_length / 2, fft_length / 2};
    x = ops::pad(x, width, "reflect");
  }
  const Tensor frames = signal::frame(x, fft_length, stride);
  return apart(signal::rfft(frames * window_of(window, length, fft_length), {fft_length}));
}
Tensor istft(const ComplexParts& x, std::int64_t length, std::int64_t stride,
             std::int64_t fft_length, std::optional<std::int64_t> samples, StringView window,
             bool center) {
  const Tensor frames = signal::irfft(joined(x), {fft_length});
  const Tensor w = window_of(window, length, fft_length);
  const Tensor sums = signal::overlap_and_add(frames * w, stride);
  const Tensor weights = signal::overlap_and_add(
      tandem::broadcast_to(tandem::square(w), {frames.dim(-2), fft_length}), stride);
  Tensor y = math::divide_no_nan(sums, weights);
  const std::int64_t begin = center ? fft_length / 2 : 0;
  std::int64_t end = y.dim(-1) - begin;
  if (samples) end = begin + *samples;
  return y[{ellipsis, Slice(begin, end)}];
}

Tensor conv(const Tensor& inputs, const Tensor& kernel, const WindowSizes& strides,
            StringView padding, const WindowSizes& dilation_rate) {
  return nn::convolution(inputs, kernel, strides, upper(padding), dilation_rate);
}
Tensor conv_transpose(const Tensor& inputs, const Tensor& kernel, const WindowSizes& strides,
                      StringView padding) {
  const std::size_t axes = spatial(inputs);
  const auto s = strides.of(axes);
  std::vector<std::int64_t> sizes{inputs.dim(0)};
  for (std::size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int>(i);
    const std::int64_t in = inputs.dim(axis + 1), k = kernel.dim(axis);
    sizes.push_back(padding == "same" ? in * s[i]
                                      : in * s[i] + std::max<std::int64_t>(k - s[i], 0));
  }
  sizes.push_back(kernel.dim(-2));
  return nn::conv_transpose(inputs, kernel, sizes, strides, upper(padding));
}
Tensor depthwise_conv(const Tensor& inputs, const Tensor& kernel, const WindowSizes& strides,
                      StringView padding) {
  const std::size_t axes = spatial(inputs);
  const auto s = strides.of(axes);
  if (axes == 1) {
    return tandem::squeeze(
        nn::depthwise_conv2d(tandem::expand_dims(inputs, 1), tandem::expand_dims(kernel, 0),
                             nn::Size2D(s[0], s[0]), nn::Padding(upper(padding))),
        {1});
  }
  return nn::depthwise_conv2d(inputs, kernel, nn::Size2D(s[0], s[1]), nn::Padding(upper(padding)));
}
Tensor separable_conv(const Tensor& inputs, const Tensor& depthwise_kernel,
                      const Tensor& pointwise_kernel, const WindowSizes& strides,
                      StringView padding) {
  return conv(depthwise_conv(inputs, depthwise_kernel, strides, padding), pointwise_kernel);
}
Tensor max_pool(const Tensor& inputs, const WindowSizes& pool_size,
                std::optional<WindowSizes> strides, StringView padding) {
  return nn::max_pool(inputs, pool_size, strides.value_or(pool_size), upper(padding));
}
Tensor average_pool(const Tensor& inputs, const WindowSizes& pool_size,
                    std::optional<WindowSizes> strides, StringView padding) {
  return nn::avg_pool(inputs, pool_size, strides.value_or(pool_size), upper(padding));
}

namespace {
template <class Reduce>
Tensor adaptive(const Tensor& inputs, const WindowSizes& output_size, Reduce reduce) {
  const std::size_t axes = spatial(inputs);
  const auto sizes = output_size.of(axes);
  Tensor x = inputs;
  for (std::size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<std::int64_t>(i) + 1;
    const std::int64_t in = x.dim(static_cast<int>(axis)), out = sizes[i];
    std::vector<Tensor> parts;
    for (std::int64_t o = 0; o < out; ++o) {
      const std::int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
      std::vector<Index> key(static_cast<std::size_t>(axis), Slice());
      key.emplace_back(Slice(begin, end));
      parts.push_back(reduce(index(x, key), axis));
    }
    x = concat(parts, axis);
  }
  return x;
}
}  // namespace
Tensor adaptive_max_pool(const Tensor& inputs, const WindowSizes& output_size) {
  return adaptive(inputs, output_size,
                  [](const Tensor& t, std::int64_t axis) { return reduce_max(t, axis, true); });
}
Tensor adaptive_average_pool(const Tensor& inputs, const WindowSizes& output_size) {
  return adaptive(inputs, output_size,
                  [](const Tensor& t, std::int64_t axis) { return reduce_mean(t, axis, true); });
}

namespace {
// For each element of the columns where in the padded image it comes from: [kernel, blocks].
std::vector<std::int32_t> unfolded_places(std::int64_t height, std::int64_t width,
                                          const std::vector<std::int64_t>& k,
                                          const std::vector<std::int64_t>& d,
                                          const std::vector<std::int64_t>& s) {
  std::vector<std::int32_t> places;
  for (std::int64_t y = 0; y < k[0]; ++y) {
    for (std::int64_t x = 0; x < k[1]; ++x) {
      for (std::int64_t top = 0; top + d[0] * (k[0] - 1) < height; top += s[0]) {
        for (std::int64_t left = 0; left + d[1] * (k[1] - 1) < width; left += s[1])
          places.push_back(static_cast<std::int32_t>((top + y * d[0]) * width + left + x * d[1]));
      }
    }
  }
  return places;
}
}  // namespace
Tensor unfold(const Tensor& input, const WindowSizes& kernel_size, const WindowSizes& dilation,
              const WindowSizes& padding, const WindowSizes& stride) {
  const auto k = kernel_size.of(2), d = dilation.of(2), p = padding.of(2), s = stride.of(2);
  const Tensor x = ops::pad(input, {{0, 0}, {0, 0}, {p[0], p[0]}, {p[1], p[1]}});
  const std::int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  const Tensor places(unfolded_places(height, width, k, d, s));
  const Tensor flat = tandem::reshape(x, {-1, channels, height * width});
  return tandem::reshape(gather(flat, places, 2),
                         {-1, channels * k[0] * k[1], places.dim(0) / (k[0] * k[1])});
}
Tensor fold(const Tensor& x, const WindowSizes& output_size, const WindowSizes& kernel_size,
            const WindowSizes& dilation, const WindowSizes& padding, const WindowSizes& stride) {
  const auto k = kernel_size.of(2), d = dilation.of(2), p = padding.of(2), s = stride.of(2);
  const auto o = output_size.of(2);
  const std::int64_t height = o[0] + 2 * p[0], width = o[1] + 2 * p[1];
  const std::int64_t channels = x.dim(1) / (k[0] * k[1]);
  const Tensor places(unfolded_places(height, width, k, d, s));
  const Tensor rows =
      tandem::transpose(tandem::reshape(x, {-1, channels, places.dim(0)}), {2, 0, 1});
  const Tensor sums = math::unsorted_segment_sum(rows, places, static_cast<int>(height * width));
  const Tensor image =
      tandem::reshape(tandem::transpose(sums, {1, 2, 0}), {-1, channels, height, width});
  return image[{ellipsis, Slice(p[0], p[0] + o[0]), Slice(p[1], p[1] + o[1])}];
}
Tensor space_to_depth(const Tensor& x, std::int64_t block) { return nn::space_to_depth(x, block); }
Tensor depth_to_space(const Tensor& x, std::int64_t block) { return nn::depth_to_space(x, block); }

namespace {
Tensor on_axis(const Tensor& v, const Tensor& x, std::int64_t axis) {
  if (!v.defined() || v.rank() != 1) return v;
  std::vector<std::int64_t> dims(static_cast<std::size_t>(x.rank()), 1);
  dims[static_cast<std::size_t>(axis < 0 ? axis + x.rank() : axis)] = -1;
  return tandem::reshape(v, dims);
}
}  // namespace
Tensor batch_normalization(const Tensor& x, const Tensor& mean, const Tensor& variance,
                           std::int64_t axis, const Tensor& offset, const Tensor& scale,
                           double epsilon) {
  return nn::batch_normalization(x, on_axis(mean, x, axis), on_axis(variance, x, axis),
                                 on_axis(offset, x, axis), on_axis(scale, x, axis), epsilon);
}
Tensor layer_normalization(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                           std::int64_t axis, double epsilon) {
  const Tensor mean = reduce_mean(x, axis, true);
  const Tensor variance = math::reduce_variance(x, axis, true);
  Tensor y = (x - mean) * math::rsqrt(variance + epsilon);
  if (gamma.defined()) y = y * gamma;
  return beta.defined() ? y + beta : y;
}
Tensor rms_normalization(const Tensor& x, const Tensor& scale, std::int64_t axis, double epsilon) {
  const Tensor y = x * math::rsqrt(reduce_mean(tandem::square(x), axis, true) + epsilon);
  return scale.defined() ? y * scale : y;
}
Tensor dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                             const Tensor& bias, const Tensor& mask, std::optional<double> scale,
                             bool is_causal) {
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.dim(-1))));
  Tensor logits = einsum("BTNH,BSNH->BNTS", {query, key}) * factor;
  if (bias.defined()) logits = logits + bias;
  Tensor allowed = mask.defined() ? tandem::cast(mask, boolean) : Tensor();
  if (is_causal) {
    const Tensor causal = linalg::band_part(ones({query.dim(1), key.dim(1)}, int32), -1, 0) > 0;
    allowed = allowed.defined() ? tandem::logical_and(allowed, causal) : causal;
  }
  if (allowed.defined()) logits = tandem::where(allowed, logits, -0.7 * 3.4028234663852886e38);
  return einsum("BNTS,BSNH->BTNH", {nn::softmax(logits), value});
}

namespace {
// Probabilities away from 0 and 1, as Keras' backend keeps them.
Tensor safe(const Tensor& p) { return clip_by_value(p, 1e-7, 1 - 1e-7); }
}  // namespace
Tensor binary_crossentropy(const Tensor& target, const Tensor& output, bool from_logits) {
  if (from_logits)
    return nn::sigmoid_cross_entropy_with_logits(tandem::cast(target, output.dtype()), output);
  const Tensor t = tandem::cast(target, output.dtype()), p = safe(output);
  return -(t * math::log(p) + (1 - t) * math::log(1 - p));
}
Tensor categorical_crossentropy(const Tensor& target, const Tensor& output, bool from_logits,
                                std::int64_t axis) {
  const Tensor t = tandem::cast(target, output.dtype());
  if (from_logits) return nn::softmax_cross_entropy_with_logits(t, output, axis);
  const Tensor p = safe(output / reduce_sum(output, axis, true));
  return -reduce_sum(t * math::log(p), axis);
}
Tensor sparse_categorical_crossentropy(const Tensor& target, const Tensor& output,
                                       bool from_logits) {
  Tensor labels = tandem::cast(target, int64);
  if (labels.rank() == output.rank() && labels.dim(-1) == 1) labels = tandem::squeeze(labels, {-1});
  const Tensor logits = from_logits ? output : math::log(safe(output));
  return nn::sparse_softmax_cross_entropy_with_logits(labels, logits);
}
Tensor ctc_loss(const Tensor& target, const Tensor& output, const Tensor& target_length,
                const Tensor& output_length, std::int64_t mask_index) {
  // The op's blank is the last class: classes behind the blank move down by one.
  const std::int64_t classes = output.dim(-1);
  std::vector<std::int32_t> order;
  for (std::int64_t i = 0; i < classes; ++i) {
    if (i != mask_index) order.push_back(static_cast<std::int32_t>(i));
  }
  order.push_back(static_cast<std::int32_t>(mask_index));
  const Tensor logits = gather(tandem::transpose(output, {1, 0, 2}), Tensor(order), 2);
  const Tensor labels = tandem::cast(target, int32);
  const Tensor moved = tandem::where(labels > static_cast<int>(mask_index), labels - 1, labels);
  const Tensor within =
      range(tandem::shape(labels)[1]) < tandem::expand_dims(tandem::cast(target_length, int32), 1);
  const Tensor places = tandem::where(within);
  return nn::ctc_loss(logits, places, gather_nd(moved, places), tandem::cast(output_length, int32));
}
Tensor psnr(const Tensor& x1, const Tensor& x2, double max_val) {
  const Tensor error = reduce_mean(math::squared_difference(x1, x2));
  return 20 * std::log10(max_val) - math::log(error) * (10 / std::log(10.0));
}

}  // namespace tandem::keras::ops
