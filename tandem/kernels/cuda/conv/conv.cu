// Convolutions of images by their definition: what runs where cuDNN is not there or refuses. One
// thread makes one result, and sums in an order that depends on the sizes alone. A depthwise
// convolution is one of as many groups as there are channels.

#include "tandem/kernels/cuda/conv/window.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

struct Problem {
  ImageLayout x, y;  // the input's and the output's (or its gradient's) layout
  Window window;
  std::int64_t filter_in = 0;  // channels of the input that one result reads
  std::int64_t group_out = 0;  // channels of the output in one group
};

// The filter is [height, width, filter_in, out channels].
template <class T>
TANDEM_KERNEL conv_kernel(const T* x, const T* filter, T* y, Problem p, std::int64_t n) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t channel = i % p.y.channels;
    const std::int64_t column = i / p.y.channels % p.y.width;
    const std::int64_t row = i / (p.y.channels * p.y.width) % p.y.height;
    const std::int64_t image = i / (p.y.channels * p.y.width * p.y.height);
    const std::int64_t first_in = channel / p.group_out * p.filter_in;
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t r = 0; r < w.height; ++r) {
      const std::int64_t in_row = row * w.stride_rows - w.pad_top + r * w.dilation_rows;
      if (in_row < 0 || in_row >= p.x.height) continue;
      for (std::int64_t c = 0; c < w.width; ++c) {
        const std::int64_t in_column =
            column * w.stride_columns - w.pad_left + c * w.dilation_columns;
        if (in_column < 0 || in_column >= p.x.width) continue;
        const T* from = x + image * p.x.by_batch + in_row * p.x.by_row + in_column * p.x.by_column +
                        first_in * p.x.by_channel;
        const T* weights = filter + (r * w.width + c) * p.filter_in * p.y.channels + channel;
        for (std::int64_t k = 0; k < p.filter_in; ++k) {
          sum += static_cast<Sum<T>>(load(from[k * p.x.by_channel])) *
                 static_cast<Sum<T>>(load(weights[k * p.y.channels]));
        }
      }
    }
    y[image * p.y.by_batch + row * p.y.by_row + column * p.y.by_column + channel * p.y.by_channel] =
        store<T>(sum);
  }
}

// The gradient by the input: each element gathers from the results that read it.
template <class T>
TANDEM_KERNEL conv_input_gradient_kernel(const T* dy, const T* filter, T* dx, Problem p,
                                         std::int64_t n) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t channel = i % p.x.channels;
    const std::int64_t column = i / p.x.channels % p.x.width;
    const std::int64_t row = i / (p.x.channels * p.x.width) % p.x.height;
    const std::int64_t image = i / (p.x.channels * p.x.width * p.x.height);
    const std::int64_t first_out = channel / p.filter_in * p.group_out;
    const std::int64_t within = channel % p.filter_in;
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t r = 0; r < w.height; ++r) {
      const std::int64_t down = row + w.pad_top - r * w.dilation_rows;
      if (down < 0 || down % w.stride_rows != 0 || down / w.stride_rows >= p.y.height) continue;
      for (std::int64_t c = 0; c < w.width; ++c) {
        const std::int64_t right = column + w.pad_left - c * w.dilation_columns;
        if (right < 0 || right % w.stride_columns != 0 || right / w.stride_columns >= p.y.width) {
          continue;
        }
        const T* from = dy + image * p.y.by_batch + down / w.stride_rows * p.y.by_row +
                        right / w.stride_columns * p.y.by_column + first_out * p.y.by_channel;
        const T* weights =
            filter + ((r * w.width + c) * p.filter_in + within) * p.y.channels + first_out;
        for (std::int64_t k = 0; k < p.group_out; ++k) {
          sum += static_cast<Sum<T>>(load(from[k * p.y.by_channel])) *
                 static_cast<Sum<T>>(load(weights[k]));
        }
      }
    }
    dx[image * p.x.by_batch + row * p.x.by_row + column * p.x.by_column +
       channel * p.x.by_channel] = store<T>(sum);
  }
}

template <class T>
TANDEM_KERNEL conv_filter_gradient_kernel(const T* x, const T* dy, T* df, Problem p,
                                          std::int64_t n) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t out = i % p.y.channels;
    const std::int64_t within = i / p.y.channels % p.filter_in;
    const std::int64_t c = i / (p.y.channels * p.filter_in) % w.width;
    const std::int64_t r = i / (p.y.channels * p.filter_in * w.width);
    const std::int64_t in = out / p.group_out * p.filter_in + within;
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t image = 0; image < p.y.batch; ++image) {
      for (std::int64_t row = 0; row < p.y.height; ++row) {
        const std::int64_t in_row = row * w.stride_rows - w.pad_top + r * w.dilation_rows;
        if (in_row < 0 || in_row >= p.x.height) continue;
        for (std::int64_t column = 0; column < p.y.width; ++column) {
          const std::int64_t in_column =
              column * w.stride_columns - w.pad_left + c * w.dilation_columns;
          if (in_column < 0 || in_column >= p.x.width) continue;
          sum += static_cast<Sum<T>>(load(x[image * p.x.by_batch + in_row * p.x.by_row +
                                            in_column * p.x.by_column + in * p.x.by_channel])) *
                 static_cast<Sum<T>>(load(dy[image * p.y.by_batch + row * p.y.by_row +
                                             column * p.y.by_column + out * p.y.by_channel]));
        }
      }
    }
    df[i] = store<T>(sum);
  }
}

// The filter's sizes; a depthwise one [height, width, channels, multiplier] lies in memory as
// [height, width, 1, channels * multiplier].
Problem problem(const KernelCall& call, const Sizes& x, Sizes filter, bool depthwise) {
  if (filter.size() != 4) refuse("filter must be 4-dimensional");
  Problem p;
  const bool first = channels_first(call);
  p.x = image_layout(x, first);
  if (depthwise) {
    if (filter[2] != p.x.channels) {
      refuse("input and filter must have the same depth: " + std::to_string(p.x.channels) + " vs " +
             std::to_string(filter[2]));
    }
    filter = {filter[0], filter[1], 1, filter[2] * filter[3]};
  }
  p.filter_in = filter[2];
  if (p.filter_in == 0 || p.x.channels % p.filter_in != 0) {
    refuse("input depth must be evenly divisible by filter depth: " + std::to_string(p.x.channels) +
           " vs " + std::to_string(p.filter_in));
  }
  const std::int64_t groups = p.x.channels / p.filter_in;
  if (groups == 0 || filter[3] % groups != 0) {
    refuse("output depth must be evenly divisible by the number of groups");
  }
  p.group_out = filter[3] / groups;
  p.window = window_of(call, p.x, filter[0], filter[1], true);
  if (depthwise && p.window.stride_rows != p.window.stride_columns) {
    refuse(
        "Current implementation only supports equal length strides in the row and column "
        "dimensions");
  }
  p.y = image_layout(
      image_sizes(p.x.batch, p.window.out_height, p.window.out_width, filter[3], first), first);
  return p;
}

Sizes output_sizes(const KernelCall& call, const Problem& p) {
  return image_sizes(p.y.batch, p.y.height, p.y.width, p.y.channels, channels_first(call));
}

void check_gradient(const KernelCall& call, const Problem& p, const TensorView& dy) {
  if (dy.sizes != output_sizes(call, p)) {
    refuse("out_backprop has another shape than the convolution's result");
  }
}

void forward(KernelCall& call, bool depthwise) {
  const TensorView x = call.input(0), filter = call.input(1);
  const Problem p = problem(call, x.sizes, filter.sizes, depthwise);
  const TensorView y = call.allocate_output(0, output_sizes(call, p));
  if (y.count == 0) return;
  visit_floating(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(conv_kernel<T>, shape_for(y.count), 0, x.as<T>(), filter.as<T>(), y.as<T>(), p,
                  y.count);
  });
}

void input_gradient(KernelCall& call, bool depthwise) {
  const Sizes sizes = call.input(0).host_vector("input_sizes");
  const TensorView filter = call.input(1), dy = call.input(2);
  const Problem p = problem(call, sizes, filter.sizes, depthwise);
  check_gradient(call, p, dy);
  const TensorView dx = call.allocate_output(0, sizes);
  if (dx.count == 0) return;
  visit_floating(dx.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(conv_input_gradient_kernel<T>, shape_for(dx.count), 0, dy.as<T>(), filter.as<T>(),
                  dx.as<T>(), p, dx.count);
  });
}

void filter_gradient(KernelCall& call, bool depthwise) {
  const TensorView x = call.input(0), dy = call.input(2);
  const Sizes sizes = call.input(1).host_vector("filter_sizes");
  const Problem p = problem(call, x.sizes, sizes, depthwise);
  check_gradient(call, p, dy);
  const TensorView df = call.allocate_output(0, sizes);
  if (df.count == 0) return;
  visit_floating(df.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(conv_filter_gradient_kernel<T>, shape_for(df.count), 0, x.as<T>(), dy.as<T>(),
                  df.as<T>(), p, df.count);
  });
}

}  // namespace

void conv_2d(KernelCall& call) { forward(call, false); }
void conv_2d_input_gradient(KernelCall& call) { input_gradient(call, false); }
void conv_2d_filter_gradient(KernelCall& call) { filter_gradient(call, false); }
void depthwise_conv_2d(KernelCall& call) { forward(call, true); }
void depthwise_conv_2d_input_gradient(KernelCall& call) { input_gradient(call, true); }
void depthwise_conv_2d_filter_gradient(KernelCall& call) { filter_gradient(call, true); }

}  // namespace tandem::cuda
