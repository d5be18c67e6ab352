// Fractional pooling (Graham, 2014): windows of unlike sizes, whose edges are drawn.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/pool/fractional_windows.h"
#include "tandem/kernels/cpu/support/arithmetic.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

template <class F>
void of_dtype(DType dtype, F f) {
  with_type<float, double, std::int32_t, std::int64_t>(dtype, f);
}

// One row of windows of an image.
template <class T, bool kLargest>
void pool_row(const T* in, T* out, const Windows& windows, std::int64_t channels,
              std::int64_t row) {
  for (std::int64_t column = 0; column < windows.across(); ++column, out += channels) {
    std::fill(out, out + channels, kLargest ? std::numeric_limits<T>::lowest() : T(0));
    windows.each(row, column, [&](std::int64_t place) {
      const T* from = in + place * channels;
      for (std::int64_t k = 0; k < channels; ++k) {
        if constexpr (kLargest) {
          out[k] = out[k] < from[k] ? from[k] : out[k];
        } else {
          out[k] = add(out[k], from[k]);
        }
      }
    });
    if (kLargest) continue;
    const auto count = static_cast<T>(windows.count(row, column));
    for (std::int64_t k = 0; k < channels; ++k) out[k] /= count;
  }
}

void set_edges(KernelContext& c, int output, const Edges& edges) {
  Array& out = c.allocate_output(output, Shape{static_cast<std::int64_t>(edges.size())});
  std::copy(edges.begin(), edges.end(), out.data<std::int64_t>());
}

template <bool kLargest>
void pool(KernelContext& c) {
  const Windows windows = draw_windows(c);
  const Array& in = c.input(0);
  const std::int64_t batch = in.shape()[0], channels = in.shape()[3], down = windows.down();
  Array& out = c.allocate_output(0, Shape{batch, down, windows.across(), channels});
  set_edges(c, 1, windows.rows);
  set_edges(c, 2, windows.columns);
  const double cost = 1.0 + static_cast<double>(windows.pixels() * channels / down);
  of_dtype(in.dtype(), [&]<class T>() {
    c.intra_op().parallel_for(batch * down, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        pool_row<T, kLargest>(in.data<T>() + i / down * windows.pixels() * channels,
                              out.data<T>() + i * windows.across() * channels, windows, channels,
                              i % down);
      }
    });
  });
}

// ---- Gradients ----

// What a sequence in an input says of `windows` windows on an axis.
Edges edges_in(const KernelContext& c, int input, std::int64_t windows, std::int64_t size) {
  const Array& given = c.input(input);
  if (given.rank() != 1 || given.num_elements() != windows + 1) {
    throw InvalidArgumentError(cat("A pooling sequence of ", windows,
                                   " windows must be a vector of ", windows + 1,
                                   " elements, got shape ", given.shape()));
  }
  const auto values = given.values<std::int64_t>();
  Edges edges(values.begin(), values.end());
  if (edges.front() < 0 || edges.back() > size || !std::is_sorted(edges.begin(), edges.end())) {
    throw InvalidArgumentError(
        cat("A pooling sequence must ascend from 0 to the ", size, " rows or columns pooled"));
  }
  return edges;
}

Windows windows_in(const KernelContext& c, const Shape& image, const Array& grad, int sequences) {
  if (image.rank() != 4 || grad.rank() != 4 || grad.shape()[0] != image[0] ||
      grad.shape()[3] != image[3]) {
    throw InvalidArgumentError(
        cat("out_backprop of shape ", grad.shape(), " does not belong to images of shape ", image));
  }
  return {edges_in(c, sequences, grad.shape()[1], image[1]),
          edges_in(c, sequences + 1, grad.shape()[2], image[2]), image[1], image[2],
          c.attr<bool>("overlapping")};
}

// Calls `window(image, row, column, place)` for all windows, `place` that of its first result;
// images may be worked at side by side.
template <class Window>
void each_window(KernelContext& c, const Windows& windows, const Shape& image, Window window) {
  const double cost = 2.0 * static_cast<double>(windows.pixels() * image[3]) + 1;
  c.intra_op().parallel_for(image[0], cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t place = i * windows.down() * windows.across() * image[3];
      for (std::int64_t row = 0; row < windows.down(); ++row) {
        for (std::int64_t column = 0; column < windows.across(); ++column, place += image[3]) {
          window(i, row, column, place);
        }
      }
    }
  });
}

void max_grad(KernelContext& c) {
  const Array &in = c.input(0), &pooled = c.input(1), &grad = c.input(2);
  const Windows windows = windows_in(c, in.shape(), grad, 3);
  if (!(pooled.shape() == grad.shape())) {
    throw InvalidArgumentError(
        cat("orig_output has shape ", pooled.shape(), ", out_backprop ", grad.shape()));
  }
  Array& out = c.allocate_output(0, in.shape());
  const std::int64_t channels = in.shape()[3];
  of_dtype(in.dtype(), [&]<class T>() {
    T* to = out.data<T>();
    std::fill(to, to + out.num_elements(), T(0));
    const auto window = [&](std::int64_t image, std::int64_t row, std::int64_t column,
                            std::int64_t place) {
      const std::int64_t first = image * windows.pixels() * channels;
      for (std::int64_t k = 0; k < channels; ++k) {
        std::int64_t largest = -1;
        windows.each(row, column, [&](std::int64_t pixel) {
          const std::int64_t at = first + pixel * channels + k;
          if (largest < 0 || in.data<T>()[largest] < in.data<T>()[at]) largest = at;
        });
        if (largest < 0) continue;
        if (in.data<T>()[largest] != pooled.data<T>()[place + k]) {
          throw InvalidArgumentError("orig_output is not what orig_input was pooled to");
        }
        to[largest] = add(to[largest], grad.data<T>()[place + k]);
      }
    };
    each_window(c, windows, in.shape(), window);
  });
}

void avg_grad(KernelContext& c) {
  const Array &sizes = c.input(0), &grad = c.input(1);
  if (sizes.rank() != 1 || sizes.num_elements() != 4) {
    throw InvalidArgumentError(
        cat("orig_input_tensor_shape must be a vector of 4 elements, got "
            "shape ",
            sizes.shape()));
  }
  const Shape image(sizes.values<std::int64_t>());
  const Windows windows = windows_in(c, image, grad, 2);
  const std::int64_t channels = image[3];
  Array& out = c.allocate_output(0, image);
  Array sums = c.allocate_temp(DType::kDouble, image);
  double* sum = sums.data<double>();
  std::fill(sum, sum + sums.num_elements(), 0.0);
  of_dtype(grad.dtype(), [&]<class T>() {
    const auto window = [&](std::int64_t i, std::int64_t row, std::int64_t column,
                            std::int64_t place) {
      const auto count = static_cast<double>(windows.count(row, column));
      windows.each(row, column, [&](std::int64_t pixel) {
        double* to = sum + (i * windows.pixels() + pixel) * channels;
        for (std::int64_t k = 0; k < channels; ++k) {
          to[k] += static_cast<double>(grad.data<T>()[place + k]) / count;
        }
      });
    };
    each_window(c, windows, image, window);
    std::transform(sum, sum + sums.num_elements(), out.data<T>(),
                   [](double x) { return static_cast<T>(x); });
  });
}

const KernelRegistration kMax{{.op = "FractionalMaxPool", .run = pool<true>}};
const KernelRegistration kAvg{{.op = "FractionalAvgPool", .run = pool<false>}};
const KernelRegistration kMaxGrad{{.op = "FractionalMaxPoolGrad", .run = max_grad}};
const KernelRegistration kAvgGrad{{.op = "FractionalAvgPoolGrad", .run = avg_grad}};

}  // namespace
}  // namespace tandem::cpu
