// Local response normalisation across channels, and its gradient. A thread makes one result.

#include <algorithm>

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

struct Window {
  std::int64_t channels, radius;
  float bias, alpha, beta;
  TANDEM_DEVICE std::int64_t first(std::int64_t channel) const {
    return channel < radius ? 0 : channel - radius;
  }
  TANDEM_DEVICE std::int64_t end(std::int64_t channel) const {
    return channel + radius + 1 > channels ? channels : channel + radius + 1;
  }
  // bias + alpha * the sum of the squares around a channel of the pixel at x.
  template <class T>
  TANDEM_DEVICE float norm(const T* x, std::int64_t channel) const {
    float sum = 0.0f;
    for (std::int64_t k = first(channel); k < end(channel); ++k) sum += load(x[k]) * load(x[k]);
    return bias + alpha * sum;
  }
};

template <class T>
TANDEM_KERNEL lrn_kernel(const T* x, T* y, std::int64_t n, Window w) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t channel = i % w.channels;
    y[i] = store<T>(load(x[i]) * std::pow(w.norm(x + i - channel, channel), -w.beta));
  }
}

// With n the norms and y the output: dx_i = g_i n_i^-beta - 2 alpha beta x_i sum_k g_k y_k / n_k,
// the sum over the channels whose windows hold i.
template <class T>
TANDEM_KERNEL lrn_gradient_kernel(const T* g, const T* x, const T* y, T* dx, std::int64_t n,
                                  Window w) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t channel = i % w.channels, pixel = i - channel;
    float sum = 0.0f;
    for (std::int64_t k = w.first(channel); k < w.end(channel); ++k) {
      sum += load(g[pixel + k]) * load(y[pixel + k]) / w.norm(x + pixel, k);
    }
    dx[i] = store<T>(load(g[i]) * std::pow(w.norm(x + pixel, channel), -w.beta) -
                     2.0f * w.alpha * w.beta * load(x[i]) * sum);
  }
}

Window window_of(const KernelCall& call, const Sizes& sizes) {
  const std::int64_t radius = call.attr_int("depth_radius");
  if (radius < 0) refuse("depth_radius must not be negative, but is " + std::to_string(radius));
  if (sizes.size() != 4) refuse("in must be 4-dimensional");
  return {sizes[3], std::min(radius, sizes[3]), call.attr_float("bias"), call.attr_float("alpha"),
          call.attr_float("beta")};
}

}  // namespace

void norm_lrn(KernelCall& call) {
  const TensorView x = call.input(0);
  const Window w = window_of(call, x.sizes);
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  visit_floating(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>) {
      TANDEM_LAUNCH(lrn_kernel<T>, shape_for(y.count), 0, x.as<T>(), y.as<T>(), y.count, w);
    }
  });
}

void norm_lrn_grad(KernelCall& call) {
  const TensorView g = call.input(0), x = call.input(1), y = call.input(2);
  const Window w = window_of(call, g.sizes);
  if (x.sizes != g.sizes || y.sizes != g.sizes) {
    refuse("input_grads, input_image, and out_image should have the same shape");
  }
  const TensorView dx = call.allocate_output(0, g.sizes);
  if (dx.count == 0) return;
  visit_floating(dx.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>) {
      TANDEM_LAUNCH(lrn_gradient_kernel<T>, shape_for(dx.count), 0, g.as<T>(), x.as<T>(), y.as<T>(),
                    dx.as<T>(), dx.count, w);
    }
  });
}

}  // namespace tandem::cuda
