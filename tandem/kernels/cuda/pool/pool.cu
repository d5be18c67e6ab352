// Pooling of images and its gradients. One thread makes one result.

#include "tandem/kernels/cuda/conv/window.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

struct Problem {
  ImageLayout x, y;
  Window window;
};

struct Place {
  std::int64_t image, row, column, channel;
};

TANDEM_DEVICE Place place_of(std::int64_t i, const ImageLayout& l) {
  return {i / (l.channels * l.width * l.height), i / (l.channels * l.width) % l.height,
          i / l.channels % l.width, i % l.channels};
}
TANDEM_DEVICE std::int64_t offset(const ImageLayout& l, std::int64_t image, std::int64_t row,
                                  std::int64_t column, std::int64_t channel) {
  return image * l.by_batch + row * l.by_row + column * l.by_column + channel * l.by_channel;
}

// The rows (or columns) of the image that a window covers.
struct Range {
  std::int64_t first, end;
};
TANDEM_DEVICE Range covered(std::int64_t at, std::int64_t stride, std::int64_t pad,
                            std::int64_t size, std::int64_t limit) {
  const std::int64_t begin = at * stride - pad;
  const std::int64_t end = begin + size;
  return {begin < 0 ? 0 : begin, end > limit ? limit : end};
}

template <class T>
TANDEM_DEVICE Sum<T> lowest() {
  if constexpr (std::is_same_v<T, Half>) return Sum<T>(-65504.0f);
  if constexpr (std::is_same_v<T, BFloat16>) return Sum<T>(-3.38953139e38f);
  return std::numeric_limits<Sum<T>>::lowest();
}

template <class T, bool kAverage>
TANDEM_KERNEL pool_kernel(const T* x, T* y, Problem p, std::int64_t n) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place at = place_of(i, p.y);
    const Range rows = covered(at.row, w.stride_rows, w.pad_top, w.height, p.x.height);
    const Range columns = covered(at.column, w.stride_columns, w.pad_left, w.width, p.x.width);
    // A maximum begins with the type's lowest number and passes over NaN, as TensorFlow's do.
    Sum<T> value = kAverage ? Sum<T>(0) : lowest<T>();
    for (std::int64_t r = rows.first; r < rows.end; ++r) {
      for (std::int64_t c = columns.first; c < columns.end; ++c) {
        const auto one = static_cast<Sum<T>>(load(x[offset(p.x, at.image, r, c, at.channel)]));
        if (kAverage) {
          value += one;
        } else if (value < one) {
          value = one;
        }
      }
    }
    if (kAverage) {
      value /= static_cast<Sum<T>>((rows.end - rows.first) * (columns.end - columns.first));
    }
    y[offset(p.y, at.image, at.row, at.column, at.channel)] = store<T>(value);
  }
}

// The windows that cover a row (or column) of the image.
TANDEM_DEVICE Range windows_over(std::int64_t at, std::int64_t stride, std::int64_t pad,
                                 std::int64_t size, std::int64_t windows) {
  const std::int64_t last = (at + pad) / stride;
  const std::int64_t before = at + pad - size;
  const std::int64_t first = before < 0 ? 0 : before / stride + 1;
  return {first, last + 1 > windows ? windows : last + 1};
}

// Each element takes the gradients of the windows whose first largest element it is.
template <class T>
TANDEM_KERNEL max_gradient_kernel(const T* x, const T* dy, T* dx, Problem p, std::int64_t n) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place at = place_of(i, p.x);
    const Range rows = windows_over(at.row, w.stride_rows, w.pad_top, w.height, p.y.height);
    const Range columns = windows_over(at.column, w.stride_columns, w.pad_left, w.width, p.y.width);
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t r = rows.first; r < rows.end; ++r) {
      for (std::int64_t c = columns.first; c < columns.end; ++c) {
        const Range in_rows = covered(r, w.stride_rows, w.pad_top, w.height, p.x.height);
        const Range in_columns = covered(c, w.stride_columns, w.pad_left, w.width, p.x.width);
        // Nothing is larger than NaN, and NaN than nothing: it counts where it comes first.
        auto most = Sum<T>(0);
        std::int64_t best = -1;
        for (std::int64_t a = in_rows.first; a < in_rows.end; ++a) {
          for (std::int64_t b = in_columns.first; b < in_columns.end; ++b) {
            const auto one = static_cast<Sum<T>>(load(x[offset(p.x, at.image, a, b, at.channel)]));
            if (best < 0 || most < one) {
              most = one;
              best = a * p.x.width + b;
            }
          }
        }
        if (best == at.row * p.x.width + at.column) {
          sum += static_cast<Sum<T>>(load(dy[offset(p.y, at.image, r, c, at.channel)]));
        }
      }
    }
    dx[offset(p.x, at.image, at.row, at.column, at.channel)] = store<T>(sum);
  }
}

template <class T>
TANDEM_KERNEL average_gradient_kernel(const T* dy, T* dx, Problem p, std::int64_t n) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place at = place_of(i, p.x);
    const Range rows = windows_over(at.row, w.stride_rows, w.pad_top, w.height, p.y.height);
    const Range columns = windows_over(at.column, w.stride_columns, w.pad_left, w.width, p.y.width);
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t r = rows.first; r < rows.end; ++r) {
      for (std::int64_t c = columns.first; c < columns.end; ++c) {
        const Range in_rows = covered(r, w.stride_rows, w.pad_top, w.height, p.x.height);
        const Range in_columns = covered(c, w.stride_columns, w.pad_left, w.width, p.x.width);
        sum += static_cast<Sum<T>>(load(dy[offset(p.y, at.image, r, c, at.channel)])) /
               static_cast<Sum<T>>((in_rows.end - in_rows.first) *
                                   (in_columns.end - in_columns.first));
      }
    }
    dx[offset(p.x, at.image, at.row, at.column, at.channel)] = store<T>(sum);
  }
}

Problem problem(const KernelCall& call, const Sizes& x) {
  const bool first = channels_first(call);
  const Sizes size = call.attr_ints("ksize");
  if (size.size() != 4) refuse("Sliding window ksize field must specify 4 dimensions");
  Problem p;
  p.x = image_layout(x, first);
  if (size.at(0) != 1 || size.at(first ? 1 : 3) != 1) {
    not_on_gpu("pooling over the batch or over channels");
  }
  p.window = window_of(call, p.x, size.at(first ? 2 : 1), size.at(first ? 3 : 2), false);
  p.y = image_layout(
      image_sizes(p.x.batch, p.window.out_height, p.window.out_width, p.x.channels, first), first);
  return p;
}

Sizes output_sizes(const KernelCall& call, const Problem& p) {
  return image_sizes(p.y.batch, p.y.height, p.y.width, p.y.channels, channels_first(call));
}

template <bool kAverage>
void pool(KernelCall& call) {
  const TensorView x = call.input(0);
  const Problem p = problem(call, x.sizes);
  const TensorView y = call.allocate_output(0, output_sizes(call, p));
  if (y.count == 0) return;
  visit_floating(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH((pool_kernel<T, kAverage>), shape_for(y.count), 0, x.as<T>(), y.as<T>(), p,
                  y.count);
  });
}

}  // namespace

void pool_max(KernelCall& call) { pool<false>(call); }
void pool_average(KernelCall& call) { pool<true>(call); }

void pool_max_gradient(KernelCall& call) {
  const TensorView x = call.input(0), dy = call.input(2);
  const Problem p = problem(call, x.sizes);
  if (dy.sizes != output_sizes(call, p) || call.input(1).sizes != dy.sizes) {
    refuse("Expected orig_output and grad of the shape of the pooling's result");
  }
  const TensorView dx = call.allocate_output(0, x.sizes);
  if (dx.count == 0) return;
  visit_floating(dx.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(max_gradient_kernel<T>, shape_for(dx.count), 0, x.as<T>(), dy.as<T>(), dx.as<T>(),
                  p, dx.count);
  });
}

void pool_average_gradient(KernelCall& call) {
  const Sizes sizes = call.input(0).host_vector("orig_input_shape");
  const TensorView dy = call.input(1);
  const Problem p = problem(call, sizes);
  if (dy.sizes != output_sizes(call, p)) {
    refuse("Expected grad of the shape of the pooling's result");
  }
  const TensorView dx = call.allocate_output(0, sizes);
  if (dx.count == 0) return;
  visit_floating(dx.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(average_gradient_kernel<T>, shape_for(dx.count), 0, dy.as<T>(), dx.as<T>(), p,
                  dx.count);
  });
}

}  // namespace tandem::cuda
