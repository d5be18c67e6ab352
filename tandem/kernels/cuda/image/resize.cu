// Resizing images: bilinear, cubic, by areas, nearest pixel; and their gradients. A thread makes
// one result. Positions and weights are those of the CPU's kernels, in float.

#include <algorithm>

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

// Sizes of the images before and after, and how pixels are placed.
struct Resize {
  std::int64_t batch = 0, channels = 0, in[2] = {}, out[2] = {};
  float scale[2] = {};
  bool align_corners = false, half_pixel_centers = false;

  // The input position of the centre of output pixel i.
  TANDEM_DEVICE float at(int axis, std::int64_t i) const {
    const auto x = static_cast<float>(i);
    return half_pixel_centers ? (x + 0.5f) * scale[axis] - 0.5f : x * scale[axis];
  }
  TANDEM_DEVICE std::int64_t clamped(int axis, std::int64_t i) const {
    return i < 0 ? 0 : (i < in[axis] ? i : in[axis] - 1);
  }
  TANDEM_DEVICE std::int64_t nearest(int axis, std::int64_t i) const {
    const float x = (static_cast<float>(i) + (half_pixel_centers ? 0.5f : 0.0f)) * scale[axis];
    return clamped(axis, static_cast<std::int64_t>(align_corners ? std::round(x) : std::floor(x)));
  }
  // The output pixels that may read input pixel i, which reach `reach` pixels around them.
  TANDEM_DEVICE void readers(int axis, std::int64_t i, float reach, std::int64_t& first,
                             std::int64_t& end) const {
    const float s = scale[axis];
    first = 0;
    end = out[axis];
    if (!(s > 0.0f)) return;
    const auto x = static_cast<float>(i);
    if (i > 1) {
      const auto low = static_cast<std::int64_t>(std::floor((x - reach - 1.0f) / s)) - 1;
      if (low > first) first = low;
    }
    if (i < in[axis] - 2) {
      const auto high = static_cast<std::int64_t>(std::ceil((x + reach + 1.0f) / s)) + 2;
      if (high < end) end = high;
    }
  }
};

// What an output pixel is made of along one axis.
template <int kCount>
struct Taps {
  static constexpr float kReach = kCount == 2 ? 1.0f : 2.0f;
  std::int64_t index[kCount];
  float weight[kCount];
};

TANDEM_DEVICE Taps<2> taps_of(const Resize& r, int axis, std::int64_t i, Taps<2>*) {
  const float at = r.at(axis, i), floor = std::floor(at);
  Taps<2> t;
  t.index[0] = r.clamped(axis, static_cast<std::int64_t>(floor));
  t.index[1] = r.clamped(axis, static_cast<std::int64_t>(std::ceil(at)));
  t.weight[1] = at - floor;
  t.weight[0] = 1.0f - (at - floor);
  return t;
}

// The cubic's weights at distances x and 1 + x, x being one of 1024 steps, as TensorFlow's table
// has them.
TANDEM_DEVICE float near_weight(float a, std::int64_t step) {
  const auto x = static_cast<float>(static_cast<double>(step) / 1024);
  return ((a + 2.0f) * x - (a + 3.0f)) * x * x + 1.0f;
}
TANDEM_DEVICE float far_weight(float a, std::int64_t step) {
  const float x = static_cast<float>(static_cast<double>(step) / 1024) + 1.0f;
  return ((a * x - 5.0f * a) * x + 8.0f * a) * x - 4.0f * a;
}

TANDEM_DEVICE Taps<4> taps_of(const Resize& r, int axis, std::int64_t i, Taps<4>*) {
  const bool keys = r.half_pixel_centers;
  const float a = keys ? -0.5f : -0.75f, at = r.at(axis, i);
  const auto floor = static_cast<std::int64_t>(std::floor(at));
  const auto step =
      static_cast<std::int64_t>(std::rint((at - static_cast<float>(floor)) * 1024.0f));
  const float weights[4] = {far_weight(a, step), near_weight(a, step), near_weight(a, 1024 - step),
                            far_weight(a, 1024 - step)};
  Taps<4> t;
  float sum = 0.0f;
  for (int k = 0; k < 4; ++k) {
    const std::int64_t wanted = floor - 1 + k;
    t.index[k] = r.clamped(axis, wanted);
    t.weight[k] = keys && t.index[k] != wanted ? 0.0f : weights[k];
    sum += t.weight[k];
  }
  if (keys && std::fabs(sum) >= 1000.0f * std::numeric_limits<float>::min()) {
    for (int k = 0; k < 4; ++k) t.weight[k] *= 1.0f / sum;
  }
  return t;
}

struct Pixel {
  std::int64_t image, y, x, channel;
};
TANDEM_DEVICE Pixel pixel_of(std::int64_t i, const std::int64_t (&size)[2], std::int64_t channels) {
  return {i / (channels * size[1] * size[0]), i / (channels * size[1]) % size[0],
          i / channels % size[1], i % channels};
}
TANDEM_DEVICE std::int64_t offset(std::int64_t image, std::int64_t y, std::int64_t x,
                                  std::int64_t channel, const std::int64_t (&size)[2],
                                  std::int64_t channels) {
  return ((image * size[0] + y) * size[1] + x) * channels + channel;
}

template <class T>
TANDEM_KERNEL bilinear_kernel(const T* in, float* out, Resize r, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Pixel p = pixel_of(i, r.out, r.channels);
    const auto y = taps_of(r, 0, p.y, static_cast<Taps<2>*>(nullptr));
    const auto x = taps_of(r, 1, p.x, static_cast<Taps<2>*>(nullptr));
    const auto at = [&](int row, int column) {
      return static_cast<float>(
          load(in[offset(p.image, y.index[row], x.index[column], p.channel, r.in, r.channels)]));
    };
    const float top = at(0, 0) + (at(0, 1) - at(0, 0)) * x.weight[1];
    const float bottom = at(1, 0) + (at(1, 1) - at(1, 0)) * x.weight[1];
    out[i] = top + (bottom - top) * y.weight[1];
  }
}

template <class T>
TANDEM_KERNEL cubic_kernel(const T* in, float* out, Resize r, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Pixel p = pixel_of(i, r.out, r.channels);
    const auto y = taps_of(r, 0, p.y, static_cast<Taps<4>*>(nullptr));
    const auto x = taps_of(r, 1, p.x, static_cast<Taps<4>*>(nullptr));
    float sum = 0.0f;
    for (int column = 0; column < 4; ++column) {
      float line = 0.0f;
      for (int row = 0; row < 4; ++row) {
        line +=
            y.weight[row] *
            static_cast<float>(load(
                in[offset(p.image, y.index[row], x.index[column], p.channel, r.in, r.channels)]));
      }
      sum += x.weight[column] * line;
    }
    out[i] = sum;
  }
}

// What output pixel i covers along an axis.
struct Area {
  float begin, end, scale;
  std::int64_t first, last;
  TANDEM_DEVICE float weight(std::int64_t k) const {
    const auto x = static_cast<float>(k);
    const float w =
        x < begin ? (x + 1.0f > end ? scale : x + 1.0f - begin) : (x + 1.0f > end ? end - x : 1.0f);
    return w / scale;
  }
};
TANDEM_DEVICE Area area_of(const Resize& r, int axis, std::int64_t i) {
  Area a;
  a.scale = r.scale[axis];
  // Corners of one pixel are no distance apart.
  if (a.scale == 0.0f) {
    a.scale = static_cast<float>(r.in[axis]) / static_cast<float>(r.out[axis]);
  }
  a.begin = static_cast<float>(i) * a.scale;
  a.end = static_cast<float>(i + 1) * a.scale;
  a.first = static_cast<std::int64_t>(std::floor(a.begin));
  a.last = static_cast<std::int64_t>(std::ceil(a.end));
  return a;
}

template <class T>
TANDEM_KERNEL area_kernel(const T* in, float* out, Resize r, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Pixel p = pixel_of(i, r.out, r.channels);
    const Area y = area_of(r, 0, p.y), x = area_of(r, 1, p.x);
    float sum = 0.0f;
    for (std::int64_t row = y.first; row < y.last; ++row) {
      float line = 0.0f;
      for (std::int64_t column = x.first; column < x.last; ++column) {
        line += x.weight(column) *
                static_cast<float>(load(in[offset(p.image, r.clamped(0, row), r.clamped(1, column),
                                                  p.channel, r.in, r.channels)]));
      }
      sum += y.weight(row) * line;
    }
    out[i] = sum;
  }
}

template <class T>
TANDEM_KERNEL nearest_kernel(const T* in, T* out, Resize r, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Pixel p = pixel_of(i, r.out, r.channels);
    out[i] = in[offset(p.image, r.nearest(0, p.y), r.nearest(1, p.x), p.channel, r.in, r.channels)];
  }
}

// The gradient by the images: each pixel gathers from the results that read it, in their order.
template <class T, int kCount>
TANDEM_KERNEL taps_gradient_kernel(const float* dy, T* dx, Resize r, std::int64_t n) {
  using S = Compute<T>;
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Pixel p = pixel_of(i, r.in, r.channels);
    std::int64_t rows[2], columns[2];
    r.readers(0, p.y, Taps<kCount>::kReach, rows[0], rows[1]);
    r.readers(1, p.x, Taps<kCount>::kReach, columns[0], columns[1]);
    S sum = S(0);
    for (std::int64_t row = rows[0]; row < rows[1]; ++row) {
      const auto y = taps_of(r, 0, row, static_cast<Taps<kCount>*>(nullptr));
      S down = S(0);
      for (int k = 0; k < kCount; ++k)
        down += y.index[k] == p.y ? static_cast<S>(y.weight[k]) : S(0);
      if (down == S(0)) continue;
      for (std::int64_t column = columns[0]; column < columns[1]; ++column) {
        const auto x = taps_of(r, 1, column, static_cast<Taps<kCount>*>(nullptr));
        S across = S(0);
        for (int k = 0; k < kCount; ++k) {
          across += x.index[k] == p.x ? static_cast<S>(x.weight[k]) : S(0);
        }
        if (across == S(0)) continue;
        sum += down * across *
               static_cast<S>(dy[offset(p.image, row, column, p.channel, r.out, r.channels)]);
      }
    }
    dx[i] = store<T>(sum);
  }
}

template <class T>
TANDEM_KERNEL nearest_gradient_kernel(const T* dy, T* dx, Resize r, std::int64_t n) {
  for (auto i = first_index<std::int64_t>(); i < n; i += index_step<std::int64_t>()) {
    const Pixel p = pixel_of(i, r.in, r.channels);
    std::int64_t rows[2], columns[2];
    r.readers(0, p.y, 1.0f, rows[0], rows[1]);
    r.readers(1, p.x, 1.0f, columns[0], columns[1]);
    Compute<T> sum = Compute<T>(0);
    for (std::int64_t row = rows[0]; row < rows[1]; ++row) {
      if (r.nearest(0, row) != p.y) continue;
      for (std::int64_t column = columns[0]; column < columns[1]; ++column) {
        if (r.nearest(1, column) != p.x) continue;
        sum = static_cast<Compute<T>>(
            sum + load(dy[offset(p.image, row, column, p.channel, r.out, r.channels)]));
      }
    }
    dx[i] = store<T>(sum);
  }
}

// ---- Calls ----

void set_placement(const KernelCall& call, Resize& r, bool has_half) {
  r.align_corners = call.attr_bool("align_corners");
  r.half_pixel_centers = has_half && call.attr_bool("half_pixel_centers");
  if (r.align_corners && r.half_pixel_centers) {
    refuse("If half_pixel_centers is True, align_corners must be False.");
  }
  for (int axis = 0; axis < 2; ++axis) {
    const auto in = static_cast<float>(r.in[axis]), out = static_cast<float>(r.out[axis]);
    r.scale[axis] = r.align_corners && r.out[axis] > 1 ? (in - 1.0f) / (out - 1.0f) : in / out;
  }
}

void check_sizes(const Resize& r) {
  if (r.out[0] <= 0 || r.out[1] <= 0) refuse("output dimensions must be positive");
  if (r.channels <= 0) refuse("image must have at least one channel");
  if (r.in[0] <= 0 || r.in[1] <= 0) refuse("input image must be of non-zero size");
  if (r.in[0] > INT32_MAX || r.in[1] > INT32_MAX) {
    refuse("input sizes must be between 0 and max int32");
  }
}

// Images in input 0, their new size in input 1.
Resize resize_of(const KernelCall& call, bool has_half = true) {
  const TensorView images = call.input(0), size = call.input(1);
  if (images.rank() != 4) refuse("input must be 4-dimensional");
  if (size.rank() != 1 || size.count != 2) refuse("shape_t must be a vector of two sizes");
  const Sizes wanted = size.host_integers();
  Resize r;
  r.batch = images.sizes[0];
  r.channels = images.sizes[3];
  std::copy_n(images.sizes.begin() + 1, 2, r.in);
  std::copy_n(wanted.begin(), 2, r.out);
  check_sizes(r);
  set_placement(call, r, has_half);
  return r;
}

// Gradients in input 0, the images in input 1.
Resize gradient_of(const KernelCall& call) {
  const TensorView dy = call.input(0), images = call.input(1);
  if (dy.rank() != 4) refuse("input_grad must be 4-dimensional");
  if (images.rank() != 4) refuse("original_image must be 4-dimensional");
  Resize r;
  r.batch = images.sizes[0];
  r.channels = images.sizes[3];
  std::copy_n(images.sizes.begin() + 1, 2, r.in);
  std::copy_n(dy.sizes.begin() + 1, 2, r.out);
  check_sizes(r);
  if (dy.sizes[0] != r.batch || dy.sizes[3] != r.channels) {
    refuse("batch and channels of the gradient must be those of the image");
  }
  set_placement(call, r, true);
  return r;
}

Sizes out_sizes(const Resize& r) { return {r.batch, r.out[0], r.out[1], r.channels}; }
Sizes in_sizes(const Resize& r) { return {r.batch, r.in[0], r.in[1], r.channels}; }

}  // namespace

#define TANDEM_RESIZE(NAME, KERNEL, HAS_HALF)                                                    \
  void image_resize_##NAME(KernelCall& call) {                                                   \
    const Resize r = resize_of(call, HAS_HALF);                                                  \
    const TensorView x = call.input(0), y = call.allocate_output(0, out_sizes(r));               \
    if (y.count > 0 && !visit_numbers(x.type, [&](auto tag) {                                    \
          using T = typename decltype(tag)::type;                                                \
          TANDEM_LAUNCH(KERNEL<T>, shape_for(y.count), 0, x.as<T>(), y.as<float>(), r, y.count); \
        })) {                                                                                    \
      no_kernel_for(x.type);                                                                     \
    }                                                                                            \
  }
#define TANDEM_RESIZE_GRADIENT(NAME, TAPS)                                                       \
  void image_resize_##NAME##_grad(KernelCall& call) {                                            \
    const Resize r = gradient_of(call);                                                          \
    const TensorView dy = call.input(0), dx = call.allocate_output(0, in_sizes(r));              \
    if (dx.count > 0 && !visit_floating(dx.type, [&](auto tag) {                                 \
          using T = typename decltype(tag)::type;                                                \
          TANDEM_LAUNCH((taps_gradient_kernel<T, TAPS>), shape_for(dx.count), 0, dy.as<float>(), \
                        dx.as<T>(), r, dx.count);                                                \
        })) {                                                                                    \
      no_kernel_for(dx.type);                                                                    \
    }                                                                                            \
  }

TANDEM_RESIZE(bilinear, bilinear_kernel, true)
TANDEM_RESIZE(cubic, cubic_kernel, true)
TANDEM_RESIZE(area, area_kernel, false)
TANDEM_RESIZE_GRADIENT(bilinear, 2)
TANDEM_RESIZE_GRADIENT(cubic, 4)

void image_resize_nearest(KernelCall& call) {
  const Resize r = resize_of(call);
  const TensorView x = call.input(0), y = call.allocate_output(0, out_sizes(r));
  if (y.count == 0) return;
  visit_size(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    TANDEM_LAUNCH(nearest_kernel<T>, shape_for(y.count), 0, x.as<T>(), y.as<T>(), r, y.count);
  });
}

// Input 1 is the size of the image whose gradient is asked for.
void image_resize_nearest_grad(KernelCall& call) {
  Resize r = resize_of(call);
  std::swap(r.in, r.out);
  set_placement(call, r, true);
  const TensorView dy = call.input(0), dx = call.allocate_output(0, in_sizes(r));
  if (dx.count > 0 && !visit_numbers(dx.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(nearest_gradient_kernel<T>, shape_for(dx.count), 0, dy.as<T>(), dx.as<T>(), r,
                      dx.count);
      })) {
    no_kernel_for(dx.type);
  }
}

}  // namespace tandem::cuda
