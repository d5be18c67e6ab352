// Convolutions of images and volumes: by NVIDIA's libraries, and by their definition where those
// are not there or refuse. One thread makes one result, and sums in an order that depends on the
// sizes alone. A depthwise convolution is one of as many groups as there are channels.

#include "tandem/kernels/cuda/conv/library.h"
#include "tandem/kernels/cuda/linalg/epilogue.h"
#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

// Where element i of a batch lies, counted with the channels last.
struct Place {
  std::int64_t image, at[3], channel;
  TANDEM_DEVICE Place(std::int64_t i, const VolumeLayout& l) {
    channel = i % l.channels;
    i /= l.channels;
    for (int axis = 2; axis >= 0; --axis) {
      at[axis] = i % l.size[axis];
      i /= l.size[axis];
    }
    image = i;
  }
  TANDEM_DEVICE std::int64_t offset(const VolumeLayout& l) const {
    return image * l.by_batch + at[0] * l.by[0] + at[1] * l.by[1] + at[2] * l.by[2] +
           channel * l.by_channel;
  }
};

// The place that the filter's element k meets from the window at `out`; negative: in the padding.
TANDEM_DEVICE std::int64_t met(const Window& w, int axis, std::int64_t out, std::int64_t k,
                               std::int64_t size) {
  const std::int64_t at = out * w.stride[axis] - w.pad[axis] + k * w.dilation[axis];
  return at < size ? at : -1;
}
// The window that meets place `in` by the filter's element k; negative: none.
TANDEM_DEVICE std::int64_t meeting(const Window& w, int axis, std::int64_t in, std::int64_t k) {
  const std::int64_t at = in + w.pad[axis] - k * w.dilation[axis];
  if (at < 0 || at % w.stride[axis] != 0) return -1;
  return at / w.stride[axis] < w.out[axis] ? at / w.stride[axis] : -1;
}

// The filter is [planes, rows, columns, filter_in, out channels].
template <class T, class Out>
TANDEM_KERNEL conv_kernel(const T* x, const T* filter, Out* y, Convolution p, std::int64_t n,
                          Epilogue epilogue) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place o(i, p.y);
    const std::int64_t first_in = o.channel / p.group_out * p.filter_in;
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t d = 0; d < w.size[0]; ++d) {
      const std::int64_t plane = met(w, 0, o.at[0], d, p.x.size[0]);
      if (plane < 0) continue;
      for (std::int64_t r = 0; r < w.size[1]; ++r) {
        const std::int64_t row = met(w, 1, o.at[1], r, p.x.size[1]);
        if (row < 0) continue;
        for (std::int64_t c = 0; c < w.size[2]; ++c) {
          const std::int64_t column = met(w, 2, o.at[2], c, p.x.size[2]);
          if (column < 0) continue;
          const T* from = x + o.image * p.x.by_batch + plane * p.x.by[0] + row * p.x.by[1] +
                          column * p.x.by[2] + first_in * p.x.by_channel;
          const T* weights = filter +
                             ((d * w.size[1] + r) * w.size[2] + c) * p.filter_in * p.y.channels +
                             o.channel;
          for (std::int64_t k = 0; k < p.filter_in; ++k) {
            sum += static_cast<Sum<T>>(load(from[k * p.x.by_channel])) *
                   static_cast<Sum<T>>(load(weights[k * p.y.channels]));
          }
        }
      }
    }
    const std::int64_t channels = p.y.channels;
    y[o.offset(p.y)] = store<Out>(epilogue.apply<T>(sum, i / channels, i % channels));
  }
}

// The gradient by the input: each element gathers from the results that read it.
template <class T>
TANDEM_KERNEL conv_input_gradient_kernel(const T* dy, const T* filter, T* dx, Convolution p,
                                         std::int64_t n) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Place in(i, p.x);
    const std::int64_t first_out = in.channel / p.filter_in * p.group_out;
    const std::int64_t within = in.channel % p.filter_in;
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t d = 0; d < w.size[0]; ++d) {
      const std::int64_t plane = meeting(w, 0, in.at[0], d);
      if (plane < 0) continue;
      for (std::int64_t r = 0; r < w.size[1]; ++r) {
        const std::int64_t row = meeting(w, 1, in.at[1], r);
        if (row < 0) continue;
        for (std::int64_t c = 0; c < w.size[2]; ++c) {
          const std::int64_t column = meeting(w, 2, in.at[2], c);
          if (column < 0) continue;
          const T* from = dy + in.image * p.y.by_batch + plane * p.y.by[0] + row * p.y.by[1] +
                          column * p.y.by[2] + first_out * p.y.by_channel;
          const T* weights =
              filter +
              (((d * w.size[1] + r) * w.size[2] + c) * p.filter_in + within) * p.y.channels +
              first_out;
          for (std::int64_t k = 0; k < p.group_out; ++k) {
            sum += static_cast<Sum<T>>(load(from[k * p.y.by_channel])) *
                   static_cast<Sum<T>>(load(weights[k]));
          }
        }
      }
    }
    dx[in.offset(p.x)] = store<T>(sum);
  }
}

template <class T>
TANDEM_KERNEL conv_filter_gradient_kernel(const T* x, const T* dy, T* df, Convolution p,
                                          std::int64_t n) {
  const Window& w = p.window;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const std::int64_t out = i % p.y.channels, within = i / p.y.channels % p.filter_in;
    std::int64_t rest = i / (p.y.channels * p.filter_in);
    const std::int64_t c = rest % w.size[2];
    rest /= w.size[2];
    const std::int64_t r = rest % w.size[1], d = rest / w.size[1];
    const std::int64_t in = out / p.group_out * p.filter_in + within;
    Sum<T> sum = Sum<T>(0);
    for (std::int64_t image = 0; image < p.y.batch; ++image) {
      for (std::int64_t o = 0; o < w.out[0]; ++o) {
        const std::int64_t plane = met(w, 0, o, d, p.x.size[0]);
        if (plane < 0) continue;
        for (std::int64_t q = 0; q < w.out[1]; ++q) {
          const std::int64_t row = met(w, 1, q, r, p.x.size[1]);
          if (row < 0) continue;
          const T* from =
              x + image * p.x.by_batch + plane * p.x.by[0] + row * p.x.by[1] + in * p.x.by_channel;
          const T* by =
              dy + image * p.y.by_batch + o * p.y.by[0] + q * p.y.by[1] + out * p.y.by_channel;
          for (std::int64_t u = 0; u < w.out[2]; ++u) {
            const std::int64_t column = met(w, 2, u, c, p.x.size[2]);
            if (column < 0) continue;
            sum += static_cast<Sum<T>>(load(from[column * p.x.by[2]])) *
                   static_cast<Sum<T>>(load(by[u * p.y.by[2]]));
          }
        }
      }
    }
    df[i] = store<T>(sum);
  }
}

// A depthwise filter [height, width, channels, multiplier] lies in memory as [height, width, 1,
// channels * multiplier].
Convolution convolution_of(const KernelCall& call, const Sizes& x, Sizes filter, bool depthwise) {
  const bool first = channels_first(call);
  if ((x.size() != 4 && x.size() != 5) || filter.size() != x.size()) {
    refuse("input and filter must be 4-dimensional, or 5-dimensional for volumes");
  }
  Convolution p;
  p.x = volume_layout(x, first);
  if (depthwise) {
    if (filter[2] != p.x.channels) {
      refuse("input and filter must have the same depth: " + std::to_string(p.x.channels) + " vs " +
             std::to_string(filter[2]));
    }
    filter = {filter[0], filter[1], 1, filter[2] * filter[3]};
  }
  const std::int64_t in = filter[filter.size() - 2], out = filter.back();
  p.filter_in = in;
  if (in == 0 || p.x.channels % in != 0) {
    refuse("input depth must be evenly divisible by filter depth: " + std::to_string(p.x.channels) +
           " vs " + std::to_string(in));
  }
  const std::int64_t groups = p.x.channels / in;
  if (groups == 0 || out % groups != 0) {
    refuse("output depth must be evenly divisible by the number of groups");
  }
  p.group_out = out / groups;
  std::int64_t size[3] = {1, 1, 1};
  const std::size_t axes = filter.size() - 2;
  for (std::size_t i = 0; i < axes; ++i) size[3 - axes + i] = filter[i];
  p.window = window_of(moves_of(call, true), p.x, first, size);
  if (depthwise && p.window.stride[1] != p.window.stride[2]) {
    refuse(
        "Current implementation only supports equal length strides in the row and column "
        "dimensions");
  }
  p.y = volume_layout(volume_sizes(x.size(), p.x.batch, p.window.out, out, first), first);
  return p;
}

Sizes output_sizes(const KernelCall& call, const Convolution& p, std::size_t rank) {
  return volume_sizes(rank, p.y.batch, p.y.size, p.y.channels, channels_first(call));
}

void check_gradient(const KernelCall& call, const Convolution& p, const TensorView& dy,
                    std::size_t rank) {
  if (dy.sizes != output_sizes(call, p, rank)) {
    refuse("out_backprop has another shape than the convolution's result");
  }
}

bool by_library(const KernelCall& call, ConvolutionPart part, const Convolution& c,
                const TensorView& x, const TensorView& filter, const TensorView& y,
                const Epilogue& epilogue = {}) {
  return convolve_by_library(
      call, part, c,
      {.type = x.type, .result_type = y.type, .x = x.data, .filter = filter.data, .y = y.data},
      epilogue);
}

void forward(KernelCall& call, bool depthwise) {
  const TensorView x = call.input(0), filter = call.input(1);
  const Convolution p = convolution_of(call, x.sizes, filter.sizes, depthwise);
  const TensorView y = call.allocate_output(0, output_sizes(call, p, x.sizes.size()));
  if (y.count == 0) return;
  if (by_library(call, ConvolutionPart::kForward, p, x, filter, y)) return;
  visit_floating(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH((conv_kernel<T, T>), shape_for(y.count), 0, x.as<T>(), filter.as<T>(), y.as<T>(),
                  p, y.count, Epilogue());
  });
}

template <class T, class Out>
void fused_conv_as(const TensorView& x, const TensorView& filter, const TensorView& y,
                   const Convolution& p, const Epilogue& epilogue) {
  TANDEM_LAUNCH((conv_kernel<T, Out>), shape_for(y.count), 0, x.as<T>(), filter.as<T>(),
                y.as<Out>(), p, y.count, epilogue);
}

// A row is a place of an image. What is added may be of one image where the result is of several.
void fused_forward(KernelCall& call) {
  const TensorView x = call.input(0), filter = call.input(1);
  if (filter.type != x.type) not_on_gpu("a convolution of two dtypes");
  const Convolution p = convolution_of(call, x.sizes, filter.sizes, call.attr_bool("depthwise"));
  const std::int64_t places = p.y.size[0] * p.y.size[1] * p.y.size[2];
  std::int64_t rows = p.y.batch * places;
  const std::int64_t own_rows = rows;
  const Epilogue epilogue = read_epilogue(call, 2, rows, p.y.channels);
  if (rows != own_rows) not_on_gpu("a convolution to which several images are added");
  const TensorView y = call.allocate_output(0, output_sizes(call, p, x.sizes.size()));
  if (y.count == 0) return;
  if (by_library(call, ConvolutionPart::kForward, p, x, filter, y, epilogue)) return;
  if (x.type == Type::kFloat && y.type == Type::kFloat) {
    fused_conv_as<float, float>(x, filter, y, p, epilogue);
  } else if (x.type == Type::kHalf && y.type == Type::kHalf) {
    fused_conv_as<Half, Half>(x, filter, y, p, epilogue);
  } else if (x.type == Type::kBFloat16 && y.type == Type::kBFloat16) {
    fused_conv_as<BFloat16, BFloat16>(x, filter, y, p, epilogue);
  } else if (x.type == Type::kBFloat16 && y.type == Type::kFloat) {
    fused_conv_as<BFloat16, float>(x, filter, y, p, epilogue);
  } else {
    not_on_gpu("a convolution with results of another dtype");
  }
}

void input_gradient(KernelCall& call, bool depthwise) {
  const Sizes sizes = call.input(0).host_vector("input_sizes");
  const TensorView filter = call.input(1), dy = call.input(2);
  const Convolution p = convolution_of(call, sizes, filter.sizes, depthwise);
  check_gradient(call, p, dy, sizes.size());
  const TensorView dx = call.allocate_output(0, sizes);
  if (dx.count == 0) return;
  if (by_library(call, ConvolutionPart::kInputGradient, p, dx, filter, dy)) return;
  visit_floating(dx.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(conv_input_gradient_kernel<T>, shape_for(dx.count), 0, dy.as<T>(), filter.as<T>(),
                  dx.as<T>(), p, dx.count);
  });
}

void filter_gradient(KernelCall& call, bool depthwise) {
  const TensorView x = call.input(0), dy = call.input(2);
  const Sizes sizes = call.input(1).host_vector("filter_sizes");
  const Convolution p = convolution_of(call, x.sizes, sizes, depthwise);
  check_gradient(call, p, dy, x.sizes.size());
  const TensorView df = call.allocate_output(0, sizes);
  if (df.count == 0) return;
  if (by_library(call, ConvolutionPart::kFilterGradient, p, x, df, dy)) return;
  visit_floating(df.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(conv_filter_gradient_kernel<T>, shape_for(df.count), 0, x.as<T>(), dy.as<T>(),
                  df.as<T>(), p, df.count);
  });
}

}  // namespace

void conv_fused(KernelCall& call) { fused_forward(call); }
void conv_forward(KernelCall& call) { forward(call, false); }
void conv_input_gradient(KernelCall& call) { input_gradient(call, false); }
void conv_filter_gradient(KernelCall& call) { filter_gradient(call, false); }
void conv_depthwise(KernelCall& call) { forward(call, true); }
void conv_depthwise_input_gradient(KernelCall& call) { input_gradient(call, true); }
void conv_depthwise_filter_gradient(KernelCall& call) { filter_gradient(call, true); }

}  // namespace tandem::cuda
