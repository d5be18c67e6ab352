// Local response normalisation across channels, and its gradient.

#include <algorithm>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/number_types.h"

namespace tandem::cpu {
namespace {

struct Settings {
  std::int64_t radius;
  float bias;
  float alpha;
  float beta;
};

Settings settings_of(const KernelContext& c) {
  const std::int64_t radius = c.attr<std::int64_t>("depth_radius");
  if (radius < 0) {
    throw InvalidArgumentError(cat("depth_radius must not be negative, but is ", radius));
  }
  const Shape& shape = c.input(0).shape();
  if (shape.rank() != 4) {
    throw InvalidArgumentError(cat("in must be 4-dimensional, but has shape ", shape));
  }
  // A wider window covers no more than all channels.
  return {std::min(radius, shape[3]), c.attr<float>("bias"), c.attr<float>("alpha"),
          c.attr<float>("beta")};
}

// Calls f(begin, end, channel) with the channels around each one.
template <class F>
void for_each_window(std::int64_t channels, std::int64_t radius, F f) {
  for (std::int64_t i = 0; i < channels; ++i) {
    f(std::max<std::int64_t>(0, i - radius), std::min(channels, i + radius + 1), i);
  }
}

template <class T>
void norms_of(const T* x, float* norms, std::int64_t channels, const Settings& s) {
  for_each_window(channels, s.radius, [&](std::int64_t begin, std::int64_t end, std::int64_t i) {
    float sum = 0;
    for (std::int64_t k = begin; k < end; ++k) sum += widen(x[k]) * widen(x[k]);
    norms[i] = s.bias + s.alpha * sum;
  });
}

double cost_of_row(std::int64_t channels, const Settings& s) {
  return static_cast<double>(channels) * (30.0 + static_cast<double>(2 * s.radius + 1));
}

void lrn(KernelContext& c) {
  const Settings s = settings_of(c);
  const Shape& shape = c.input(0).shape();
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  const std::int64_t channels = shape[3];
  with_type<Half, BFloat16, float>(out.dtype(), [&]<class T>() {
    const T* x = c.input(0).data<T>();
    T* y = out.data<T>();
    c.intra_op().parallel_for(
        shape.product(0, 3), cost_of_row(channels, s), [&](std::int64_t begin, std::int64_t end) {
          const Array scratch = c.allocate_temp(DType::kFloat, Shape{channels});
          float* norms = scratch.data<float>();
          for (std::int64_t at = begin * channels; at < end * channels; at += channels) {
            norms_of(x + at, norms, channels, s);
            for (std::int64_t i = 0; i < channels; ++i) {
              y[at + i] = static_cast<T>(widen(x[at + i]) * std::pow(norms[i], -s.beta));
            }
          }
        });
  });
}

// With n the norms and y the output: dx_i = g_i n_i^-beta - 2 alpha beta x_i sum_k g_k y_k / n_k,
// the sum over the channels whose windows hold i.
void lrn_grad(KernelContext& c) {
  const Settings s = settings_of(c);
  const Shape& shape = c.input(0).shape();
  for (int i = 1; i < 3; ++i) {
    if (c.input(i).shape() != shape) {
      throw InvalidArgumentError(
          cat("input_grads, input_image, and out_image should have the same "
              "shape, but have ",
              shape, ", ", c.input(1).shape(), " and ", c.input(2).shape()));
    }
  }
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  const std::int64_t channels = shape[3];
  with_type<Half, BFloat16, float>(out.dtype(), [&]<class T>() {
    const T* gradient = c.input(0).data<T>();
    const T* x = c.input(1).data<T>();
    const T* y = c.input(2).data<T>();
    T* to = out.data<T>();
    c.intra_op().parallel_for(
        shape.product(0, 3), cost_of_row(channels, s), [&](std::int64_t begin, std::int64_t end) {
          const Array scratch = c.allocate_temp(DType::kFloat, Shape{2, channels});
          float* norms = scratch.data<float>();
          float* shares = norms + channels;
          for (std::int64_t at = begin * channels; at < end * channels; at += channels) {
            norms_of(x + at, norms, channels, s);
            for (std::int64_t i = 0; i < channels; ++i) {
              shares[i] = widen(gradient[at + i]) * widen(y[at + i]) / norms[i];
            }
            for_each_window(
                channels, s.radius, [&](std::int64_t first, std::int64_t last, std::int64_t i) {
                  float sum = 0;
                  for (std::int64_t k = first; k < last; ++k) sum += shares[k];
                  to[at + i] =
                      static_cast<T>(widen(gradient[at + i]) * std::pow(norms[i], -s.beta) -
                                     2 * s.alpha * s.beta * widen(x[at + i]) * sum);
                });
          }
        });
  });
}

constexpr DTypeSet kTypes{DType::kHalf, DType::kBFloat16, DType::kFloat};
const KernelRegistration kLrn{{.op = "LRN", .types = {{"T", kTypes}}, .run = lrn}};
const KernelRegistration kLrnGrad{{.op = "LRNGrad", .types = {{"T", kTypes}}, .run = lrn_grad}};

}  // namespace
}  // namespace tandem::cpu
