// Local response normalisation across channels, and its gradient.

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/norm/lrn_rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

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

// Memory for a row of pixels, each array of as many floats as there are channels; `padded` has
// zeros before and behind them, for windows that reach beyond.
struct Row {
  Row(const KernelContext& c, std::int64_t channels, const Settings& s)
      : memory(c.allocate_temp(DType::kFloat, Shape{7 * channels + 2 * s.radius})),
        norms(memory.data<float>()),
        powers(norms + channels),
        result(powers + channels),
        x(result + channels),
        y(x + channels),
        gradient(y + channels),
        padded(gradient + channels) {
    std::fill(padded, padded + channels + 2 * s.radius, 0.0f);
    padded += s.radius;
  }

  Array memory;
  float *norms, *powers, *result, *x, *y, *gradient, *padded;
};

template <class T>
void read_row(const T* from, float* to, std::int64_t n) {
  if constexpr (is_float16<T>) {
    to_floats(from, to, n);
  } else {
    std::copy(from, from + n, to);
  }
}

template <class T>
void write_row(const float* from, T* to, std::int64_t n) {
  if constexpr (is_float16<T>) {
    from_floats(from, to, n);
  } else {
    std::copy(from, from + n, to);
  }
}

void find_norms(const Row& row, std::int64_t channels, const Settings& s) {
  for (std::int64_t i = 0; i < channels; ++i) row.padded[i] = row.x[i] * row.x[i];
  window_sums(row.padded - s.radius, 2 * s.radius + 1, row.norms, channels);
  for (std::int64_t i = 0; i < channels; ++i) row.norms[i] = s.bias + s.alpha * row.norms[i];
  negative_powers(row.norms, s.beta, row.powers, channels);
}

double cost_of_row(std::int64_t channels, const Settings& s) {
  return static_cast<double>(channels) * (3.0 + 0.1 * static_cast<double>(s.radius));
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
          const Row row(c, channels, s);
          for (std::int64_t at = begin * channels; at < end * channels; at += channels) {
            read_row(x + at, row.x, channels);
            find_norms(row, channels, s);
            for (std::int64_t i = 0; i < channels; ++i) row.result[i] = row.x[i] * row.powers[i];
            write_row(row.result, y + at, channels);
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
          const Row row(c, channels, s);
          for (std::int64_t at = begin * channels; at < end * channels; at += channels) {
            read_row(x + at, row.x, channels);
            read_row(y + at, row.y, channels);
            read_row(gradient + at, row.gradient, channels);
            find_norms(row, channels, s);
            for (std::int64_t i = 0; i < channels; ++i) {
              row.padded[i] = row.gradient[i] * row.y[i] / row.norms[i];
            }
            window_sums(row.padded - s.radius, 2 * s.radius + 1, row.result, channels);
            for (std::int64_t i = 0; i < channels; ++i) {
              row.result[i] =
                  row.gradient[i] * row.powers[i] - 2 * s.alpha * s.beta * row.x[i] * row.result[i];
            }
            write_row(row.result, to + at, channels);
          }
        });
  });
}

constexpr DTypeSet kTypes{DType::kHalf, DType::kBFloat16, DType::kFloat};
const KernelRegistration kLrn{{.op = "LRN", .types = {{"T", kTypes}}, .run = lrn}};
const KernelRegistration kLrnGrad{{.op = "LRNGrad", .types = {{"T", kTypes}}, .run = lrn_grad}};

}  // namespace
}  // namespace tandem::cpu
