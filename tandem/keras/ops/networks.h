#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/autodiff/gradient_tape.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/losses.h"
#include "tandem/ops/axes.h"
#include "tandem/ops/control_flow.h"
#include "tandem/ops/functional_ops.h"
#include "tandem/ops/layout_ops.h"
#include "tandem/ops/linalg_functions.h"
#include "tandem/ops/linalg_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/nn_functions.h"
#include "tandem/runtime/tensor.h"

/// Products, linear algebra, convolutions, losses and control flow.
namespace tandem::keras::ops {

// ---- Products. ----

TANDEM_EXPORT Tensor matmul(const Tensor& x1, const Tensor& x2);
TANDEM_EXPORT Tensor dot(const Tensor& x1, const Tensor& x2);
TANDEM_EXPORT Tensor vdot(const Tensor& x1, const Tensor& x2);
TANDEM_EXPORT Tensor inner(const Tensor& x1, const Tensor& x2);
TANDEM_EXPORT Tensor outer(const Tensor& x1, const Tensor& x2);
TANDEM_EXPORT Tensor kron(const Tensor& x1, const Tensor& x2);
TANDEM_EXPORT Tensor cross(const Tensor& x1, const Tensor& x2);
using tandem::einsum;
using tandem::tensordot;
TANDEM_EXPORT Tensor trace(const Tensor& x, std::int64_t offset = 0);
/// Distances of the rows of one from those of the other.
TANDEM_EXPORT Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2);

// ---- Linear algebra. ----

using linalg::det;
using linalg::eig;
using linalg::eigh;
using linalg::inv;
using linalg::logdet;
using linalg::lstsq;
using linalg::matrix_rank;
using linalg::pinv;
using linalg::slogdet;
using linalg::solve;
TANDEM_EXPORT Tensor cholesky(const Tensor& x, bool upper = false);
/// The inverse of A from its Cholesky factor.
TANDEM_EXPORT Tensor cholesky_inverse(const Tensor& x, bool upper = false);
/// LU in one matrix, and the rows that were exchanged, as SciPy counts them.
TANDEM_EXPORT std::pair<Tensor, Tensor> lu_factor(const Tensor& x);
TANDEM_EXPORT std::pair<Tensor, Tensor> qr(const Tensor& x, StringView mode = "reduced");
/// u, s, vᴴ.
TANDEM_EXPORT std::vector<Tensor> svd(const Tensor& x, bool full_matrices = true);
TANDEM_EXPORT Tensor solve_triangular(const Tensor& a, const Tensor& b, bool lower = false);
TANDEM_EXPORT Tensor norm(const Tensor& x, NormOrder ord = 2, Axes axis = {},
                          bool keepdims = false);
/// x divided by its norm of this order along the axis.
TANDEM_EXPORT Tensor normalize(const Tensor& x, std::int64_t axis = -1, double order = 2,
                               double epsilon = 1e-12);
/// Complex numbers of these magnitudes and angles.
TANDEM_EXPORT Tensor polar(const Tensor& abs, const Tensor& angle);

// ---- Fourier transforms: complex numbers as pairs of a real and an imaginary part. ----

using ComplexParts = std::pair<Tensor, Tensor>;
TANDEM_EXPORT ComplexParts fft(const ComplexParts& x);
TANDEM_EXPORT ComplexParts fft2(const ComplexParts& x);
TANDEM_EXPORT ComplexParts ifft2(const ComplexParts& x);
TANDEM_EXPORT ComplexParts rfft(const Tensor& x, std::optional<std::int64_t> fft_length = {});
TANDEM_EXPORT Tensor irfft(const ComplexParts& x, std::optional<std::int64_t> fft_length = {});
TANDEM_EXPORT ComplexParts stft(const Tensor& x, std::int64_t sequence_length,
                                std::int64_t sequence_stride, std::int64_t fft_length,
                                StringView window = "hann", bool center = true);
TANDEM_EXPORT Tensor istft(const ComplexParts& x, std::int64_t sequence_length,
                           std::int64_t sequence_stride, std::int64_t fft_length,
                           std::optional<std::int64_t> length = {}, StringView window = "hann",
                           bool center = true);

// ---- Convolution, pooling, normalization; channels last, padding "valid" or "same". ----

using nn::WindowSizes;
TANDEM_EXPORT Tensor conv(const Tensor& inputs, const Tensor& kernel,
                          const WindowSizes& strides = 1, StringView padding = "valid",
                          const WindowSizes& dilation_rate = 1);
TANDEM_EXPORT Tensor conv_transpose(const Tensor& inputs, const Tensor& kernel,
                                    const WindowSizes& strides = 1, StringView padding = "valid");
TANDEM_EXPORT Tensor depthwise_conv(const Tensor& inputs, const Tensor& kernel,
                                    const WindowSizes& strides = 1, StringView padding = "valid");
TANDEM_EXPORT Tensor separable_conv(const Tensor& inputs, const Tensor& depthwise_kernel,
                                    const Tensor& pointwise_kernel, const WindowSizes& strides = 1,
                                    StringView padding = "valid");
TANDEM_EXPORT Tensor max_pool(const Tensor& inputs, const WindowSizes& pool_size,
                              std::optional<WindowSizes> strides = {},
                              StringView padding = "valid");
TANDEM_EXPORT Tensor average_pool(const Tensor& inputs, const WindowSizes& pool_size,
                                  std::optional<WindowSizes> strides = {},
                                  StringView padding = "valid");
/// Windows so wide that the result has these sizes.
TANDEM_EXPORT Tensor adaptive_max_pool(const Tensor& inputs, const WindowSizes& output_size);
TANDEM_EXPORT Tensor adaptive_average_pool(const Tensor& inputs, const WindowSizes& output_size);
/// Blocks of [batch, channels, height, width] as columns, and their sum back in place.
TANDEM_EXPORT Tensor unfold(const Tensor& input, const WindowSizes& kernel_size,
                            const WindowSizes& dilation = 1, const WindowSizes& padding = 0,
                            const WindowSizes& stride = 1);
TANDEM_EXPORT Tensor fold(const Tensor& x, const WindowSizes& output_size,
                          const WindowSizes& kernel_size, const WindowSizes& dilation = 1,
                          const WindowSizes& padding = 0, const WindowSizes& stride = 1);
TANDEM_EXPORT Tensor space_to_depth(const Tensor& x, std::int64_t block_size);
TANDEM_EXPORT Tensor depth_to_space(const Tensor& x, std::int64_t block_size);
TANDEM_EXPORT Tensor batch_normalization(const Tensor& x, const Tensor& mean,
                                         const Tensor& variance, std::int64_t axis = -1,
                                         const Tensor& offset = {}, const Tensor& scale = {},
                                         double epsilon = 1e-3);
TANDEM_EXPORT Tensor layer_normalization(const Tensor& x, const Tensor& gamma = {},
                                         const Tensor& beta = {}, std::int64_t axis = -1,
                                         double epsilon = 1e-5);
TANDEM_EXPORT Tensor rms_normalization(const Tensor& x, const Tensor& scale = {},
                                       std::int64_t axis = -1, double epsilon = 1e-6);
/// [batch, length, heads, head_dim] each; mask and bias broadcast to [batch, heads, query, key].
TANDEM_EXPORT Tensor dot_product_attention(const Tensor& query, const Tensor& key,
                                           const Tensor& value, const Tensor& bias = {},
                                           const Tensor& mask = {},
                                           std::optional<double> scale = {},
                                           bool is_causal = false);

// ---- Losses. ----

TANDEM_EXPORT Tensor binary_crossentropy(const Tensor& target, const Tensor& output,
                                         bool from_logits = false);
TANDEM_EXPORT Tensor categorical_crossentropy(const Tensor& target, const Tensor& output,
                                              bool from_logits = false, std::int64_t axis = -1);
TANDEM_EXPORT Tensor sparse_categorical_crossentropy(const Tensor& target, const Tensor& output,
                                                     bool from_logits = false);
TANDEM_EXPORT Tensor ctc_loss(const Tensor& target, const Tensor& output,
                              const Tensor& target_length, const Tensor& output_length,
                              std::int64_t mask_index = 0);
TANDEM_EXPORT Tensor psnr(const Tensor& x1, const Tensor& x2, double max_val);

// ---- Control flow. ----

using tandem::cond;
using tandem::custom_gradient;
using tandem::scan;
using tandem::vectorized_map;
using tandem::while_loop;
template <class F, class Elems>
auto map(F fn, const Elems& xs) {
  return map_fn(std::move(fn), xs);
}
/// body(i, value) for i from lower to upper.
template <class F>
Tensor fori_loop(std::int64_t lower, std::int64_t upper, F body, Tensor value) {
  for (std::int64_t i = lower; i < upper; ++i) value = body(Tensor(static_cast<int>(i)), value);
  return value;
}
template <class Branch>
auto switch_(const Tensor& index, const std::vector<Branch>& branches) {
  return switch_case(index, branches);
}
/// f of all prefixes: f is associative and takes two slices along `axis`.
template <class F>
Tensor associative_scan(F f, const Tensor& elems, bool reverse = false) {
  const Tensor x = reverse ? tandem::reverse(elems, {0}) : elems;
  const Tensor y = tandem::scan([&](Tensor a, Tensor b) { return f(a, b); }, x);
  return reverse ? tandem::reverse(y, {0}) : y;
}
/// The function of each element of the first axis.
template <class F>
auto vectorize(F fn) {
  return [fn](const Tensor& x) { return map_fn(fn, x); };
}

}  // namespace tandem::keras::ops
