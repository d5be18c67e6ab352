// Colours of images: hue, saturation, contrast.

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

template <class W>
struct Color {
  W a, b, c;
};

// In this order TensorFlow's numbers come of NaN: what follows one replaces it.
template <class W>
TANDEM_DEVICE W larger(W a, W b) {
  return a < b ? b : a;
}
template <class W>
TANDEM_DEVICE W smaller(W a, W b) {
  return b < a ? b : a;
}

template <class W>
TANDEM_DEVICE Color<W> to_hsv(Color<W> rgb) {
  const W most = larger(rgb.c, larger(rgb.b, rgb.a));
  const W range = most - smaller(rgb.c, smaller(rgb.b, rgb.a));
  const W saturation = most > W(0) ? range / most : W(0);
  const W norm = W(1) / (W(6) * range);
  W hue = rgb.a == most   ? norm * (rgb.b - rgb.c)
          : rgb.b == most ? norm * (rgb.c - rgb.a) + W(2) / W(6)
                          : norm * (rgb.a - rgb.b) + W(4) / W(6);
  if (!(range > W(0))) hue = W(0);
  if (hue < W(0)) hue += W(1);
  return {hue, saturation, most};
}

template <class W>
TANDEM_DEVICE W part(W x) {
  return smaller(larger(x, W(0)), W(1));
}
template <class W>
TANDEM_DEVICE Color<W> to_rgb(Color<W> hsv) {
  const W turned = hsv.a * W(6);
  const W red = part(std::fabs(turned - W(3)) - W(1));
  const W green = part(W(2) - std::fabs(turned - W(2)));
  const W blue = part(W(2) - std::fabs(turned - W(4)));
  const W grey = W(1) - hsv.b;
  return {(grey + hsv.b * red) * hsv.c, (grey + hsv.b * green) * hsv.c,
          (grey + hsv.b * blue) * hsv.c};
}

// `by` is the number that some of them take.
struct ToHsv {
  template <class W>
  TANDEM_DEVICE static Color<W> apply(Color<W> rgb, float) {
    return to_hsv(rgb);
  }
};
struct ToRgb {
  template <class W>
  TANDEM_DEVICE static Color<W> apply(Color<W> hsv, float) {
    return to_rgb(hsv);
  }
};
struct Hue {
  template <class W>
  TANDEM_DEVICE static Color<W> apply(Color<W> rgb, float by) {
    Color<W> hsv = to_hsv(rgb);
    hsv.a += static_cast<W>(by);
    hsv.a -= std::floor(hsv.a);
    return to_rgb(hsv);
  }
};
struct Saturation {
  template <class W>
  TANDEM_DEVICE static Color<W> apply(Color<W> rgb, float by) {
    Color<W> hsv = to_hsv(rgb);
    hsv.b = part(hsv.b * static_cast<W>(by));
    return to_rgb(hsv);
  }
};

template <class F, class T>
TANDEM_KERNEL color_kernel(const T* x, const float* by, T* y, std::int64_t pixels) {
  const float number = by ? *by : 0.0f;
  for (auto i = first_index<std::int64_t>(); i < pixels; i += index_step<std::int64_t>()) {
    const Color<Compute<T>> made =
        F::apply(Color<Compute<T>>{load(x[3 * i]), load(x[3 * i + 1]), load(x[3 * i + 2])}, number);
    y[3 * i] = store<T>(made.a);
    y[3 * i + 1] = store<T>(made.b);
    y[3 * i + 2] = store<T>(made.c);
  }
}

template <class F>
void map_colors(KernelCall& call, const float* by) {
  const TensorView x = call.input(0);
  if (x.rank() < 1) refuse("input must be at least 1D");
  if (x.sizes.back() != 3) refuse("input must have 3 channels");
  const TensorView y = call.allocate_output(0, x.sizes);
  if (y.count > 0 && !visit_floating(y.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH((color_kernel<F, T>), shape_for(y.count / 3), 0, x.as<T>(), by, y.as<T>(),
                      y.count / 3);
      })) {
    no_kernel_for(y.type);
  }
}

const float* adjustment(const KernelCall& call, const char* name) {
  const TensorView by = call.input(1);
  if (call.input(0).rank() < 3) refuse("input must be at least 3-D");
  if (by.rank() != 0) refuse(std::string(name) + " must be scalar");
  return by.as<float>();
}

// A block for each image and channel.
template <class T>
TANDEM_KERNEL contrast_kernel(const T* x, const float* factor, T* y, std::int64_t images,
                              std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t b = blockIdx.x; b < images * channels; b += gridDim.x) {
    const std::int64_t first = b / channels * pixels * channels + b % channels;
    double sum = 0;
    for (std::int64_t i = threadIdx.x; i < pixels; i += blockDim.x) {
      sum += static_cast<double>(load(x[first + i * channels]));
    }
    sum = block_reduce_all(sum, 0.0, [](double a, double c) { return a + c; });
    const auto mean = static_cast<float>(sum / static_cast<double>(pixels));
    for (std::int64_t i = threadIdx.x; i < pixels; i += blockDim.x) {
      const auto value = static_cast<float>(load(x[first + i * channels]));
      y[first + i * channels] = store<T>((value - mean) * *factor + mean);
    }
    __syncthreads();
  }
}

}  // namespace

void image_to_hsv(KernelCall& call) { map_colors<ToHsv>(call, nullptr); }
void image_to_rgb(KernelCall& call) { map_colors<ToRgb>(call, nullptr); }
void image_adjust_hue(KernelCall& call) { map_colors<Hue>(call, adjustment(call, "delta")); }
void image_adjust_saturation(KernelCall& call) {
  map_colors<Saturation>(call, adjustment(call, "scale"));
}

void image_adjust_contrast(KernelCall& call) {
  const float* const factor = adjustment(call, "contrast_factor");
  const TensorView x = call.input(0), y = call.allocate_output(0, x.sizes);
  if (y.count == 0) return;
  const std::size_t rank = x.sizes.size();
  const std::int64_t channels = x.sizes[rank - 1], pixels = x.sizes[rank - 2] * x.sizes[rank - 3];
  const std::int64_t images = y.count / (channels * pixels);
  if (!visit_floating(y.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(contrast_kernel<T>, rows_shape(images * channels, default_block()), 0,
                      x.as<T>(), factor, y.as<T>(), images, pixels, channels);
      })) {
    no_kernel_for(y.type);
  }
}

}  // namespace tandem::cuda
