// CropAndResize and its gradients. A box of an image that is not there is left out.

#include <cmath>

#include "tandem/kernels/cuda/support/launch.h"
#include "tandem/kernels/cuda/support/types.h"
#include "tandem/kernels/cuda/support/warp.h"

namespace tandem::cuda {
namespace {

struct Crops {
  std::int64_t boxes, height, width;                     // of the crops
  std::int64_t batch, image_height, image_width, depth;  // of the images
  const float* box;
  const std::int32_t* image_of;
  bool nearest;
};

// Where the pixels of a crop lie along one axis of the image.
struct CropAxis {
  float begin, step, last, ratio;
  TANDEM_DEVICE CropAxis(float from, float to, std::int64_t image, std::int64_t crop)
      : last(static_cast<float>(image - 1)) {
    ratio = crop > 1 ? last / static_cast<float>(crop - 1) : 0;
    step = crop > 1 ? (to - from) * last / static_cast<float>(crop - 1) : 0;
    begin = crop > 1 ? from * last : 0.5f * (from + to) * last;
  }
  TANDEM_DEVICE float at(std::int64_t i) const { return begin + static_cast<float>(i) * step; }
  TANDEM_DEVICE bool inside(float x) const { return x >= 0 && x <= last; }
};

// A pixel of a crop: the box, and the place in the image.
struct Pixel {
  std::int64_t box, image;
  float y, x;
  bool inside;
  TANDEM_DEVICE Pixel(const Crops& k, std::int64_t pixel) {
    const std::int64_t j = pixel % k.width, i = pixel / k.width % k.height;
    box = pixel / k.width / k.height;
    const float* b = k.box + box * 4;
    const CropAxis ys(b[0], b[2], k.image_height, k.height);
    const CropAxis xs(b[1], b[3], k.image_width, k.width);
    image = k.image_of[box];
    y = ys.at(i);
    x = xs.at(j);
    inside = image >= 0 && image < k.batch && ys.inside(y) && xs.inside(x);
  }
  TANDEM_DEVICE std::int64_t offset(const Crops& k, float row, float column,
                                    std::int64_t channel) const {
    return ((image * k.image_height + static_cast<std::int64_t>(row)) * k.image_width +
            static_cast<std::int64_t>(column)) *
               k.depth +
           channel;
  }
};

template <class T>
TANDEM_KERNEL crop_kernel(const T* images, float* to, Crops k, std::int64_t n, float outside) {
  for (auto e = first_index<std::int64_t>(); e < n; e += index_step<std::int64_t>()) {
    const std::int64_t channel = e % k.depth;
    const Pixel p(k, e / k.depth);
    if (!p.inside) {
      to[e] = outside;
    } else if (k.nearest) {
      to[e] =
          static_cast<float>(load(images[p.offset(k, std::round(p.y), std::round(p.x), channel)]));
    } else {
      const float top = std::floor(p.y), bottom = std::ceil(p.y);
      const float left = std::floor(p.x), right = std::ceil(p.x);
      const auto value = [&](float row, float column) {
        return static_cast<float>(load(images[p.offset(k, row, column, channel)]));
      };
      const float across = p.x - left;
      const float up = value(top, left) + (value(top, right) - value(top, left)) * across;
      const float low = value(bottom, left) + (value(bottom, right) - value(bottom, left)) * across;
      to[e] = up + (low - up) * (p.y - top);
    }
  }
}

template <class T>
TANDEM_KERNEL crop_grad_image_kernel(const float* grads, T* to, Crops k, std::int64_t n) {
  for (auto e = first_index<std::int64_t>(); e < n; e += index_step<std::int64_t>()) {
    const std::int64_t channel = e % k.depth;
    const Pixel p(k, e / k.depth);
    if (!p.inside) continue;
    const auto add = [&](float row, float column, float weight) {
      atomic_add(to + p.offset(k, row, column, channel), static_cast<T>(grads[e] * weight));
    };
    if (k.nearest) {
      add(std::round(p.y), std::round(p.x), 1);
      continue;
    }
    const float top = std::floor(p.y), bottom = std::ceil(p.y), down = p.y - top;
    const float left = std::floor(p.x), right = std::ceil(p.x), across = p.x - left;
    add(top, left, (1 - down) * (1 - across));
    add(top, right, (1 - down) * across);
    add(bottom, left, down * (1 - across));
    add(bottom, right, down * across);
  }
}

// A block sums the gradients of a box.
template <class T>
TANDEM_KERNEL crop_grad_boxes_kernel(const float* grads, const T* images, float* to, Crops k) {
  const std::int64_t each = k.height * k.width * k.depth;
  const auto sum = [](float a, float b) { return a + b; };
  for (std::int64_t box = blockIdx.x; box < k.boxes; box += gridDim.x) {
    const float* edges = k.box + box * 4;
    const CropAxis ys(edges[0], edges[2], k.image_height, k.height);
    const CropAxis xs(edges[1], edges[3], k.image_width, k.width);
    float of[4] = {0, 0, 0, 0};
    for (std::int64_t e = threadIdx.x; e < each; e += blockDim.x) {
      const std::int64_t channel = e % k.depth, pixel = e / k.depth;
      const Pixel p(k, box * k.height * k.width + pixel);
      if (!p.inside) continue;
      const float top = std::floor(p.y), bottom = std::ceil(p.y), down = p.y - top;
      const float left = std::floor(p.x), right = std::ceil(p.x), across = p.x - left;
      const auto value = [&](float row, float column) {
        return static_cast<float>(load(images[p.offset(k, row, column, channel)]));
      };
      const float top_left = value(top, left), top_right = value(top, right);
      const float bottom_left = value(bottom, left), bottom_right = value(bottom, right);
      const float g = grads[box * each + e];
      const float by_y =
          g * ((1 - across) * (bottom_left - top_left) + across * (bottom_right - top_right));
      const float by_x =
          g * ((1 - down) * (top_right - top_left) + down * (bottom_right - bottom_left));
      const auto i = static_cast<float>(pixel / k.width), j = static_cast<float>(pixel % k.width);
      of[0] += by_y * (k.height > 1 ? ys.last - i * ys.ratio : 0.5f * ys.last);
      of[2] += by_y * (k.height > 1 ? i * ys.ratio : 0.5f * ys.last);
      of[1] += by_x * (k.width > 1 ? xs.last - j * xs.ratio : 0.5f * xs.last);
      of[3] += by_x * (k.width > 1 ? j * xs.ratio : 0.5f * xs.last);
    }
    for (int edge = 0; edge < 4; ++edge) {
      const float total = block_reduce_all(of[edge], 0.0f, sum);
      if (threadIdx.x == 0) to[box * 4 + edge] = total;
    }
  }
}

Crops crops_of(const KernelCall& call, const Sizes& images, int boxes, std::int64_t height,
               std::int64_t width) {
  if (images.size() != 4) refuse("input image must be 4-D");
  if (images[1] <= 0 || images[2] <= 0) refuse("image dimensions must be positive");
  const TensorView box = call.input(boxes), image_of = call.input(boxes + 1);
  if (box.rank() != 2 || box.sizes[1] != 4) refuse("boxes must be 2-D of 4 columns");
  if (image_of.rank() != 1 || image_of.count != box.sizes[0])
    refuse("box_index has an incompatible shape");
  if (height <= 0 || width <= 0) refuse("crop dimensions must be positive");
  return {box.sizes[0], height,          width,
          images[0],    images[1],       images[2],
          images[3],    box.as<float>(), image_of.as<std::int32_t>(),
          false};
}

bool is_nearest(const KernelCall& call) {
  const std::string method = call.attr_string("method");
  if (method != "bilinear" && method != "nearest")
    refuse("method must be 'bilinear' or 'nearest', not '" + method + "'.");
  return method == "nearest";
}

void check_grads(const Crops& k, const TensorView& grads) {
  if (grads.sizes[0] != k.boxes || grads.sizes[3] != k.depth)
    refuse("grads do not fit the boxes and the depth");
}

}  // namespace

void image_crop_and_resize(KernelCall& call) {
  const TensorView images = call.input(0), size = call.input(3);
  if (size.rank() != 1 || size.count != 2) refuse("crop_size must be 1-D with 2 elements");
  const Sizes crop = call.read_integers(size);
  const bool nearest = is_nearest(call);
  Crops k = crops_of(call, images.sizes, 1, crop[0], crop[1]);
  k.nearest = nearest;
  const TensorView y = call.allocate_output(0, {k.boxes, k.height, k.width, k.depth});
  if (y.count == 0) return;
  const float outside = call.attr_float("extrapolation_value");
  if (!visit_numbers(images.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(crop_kernel<T>, shape_for(y.count), 0, images.as<T>(), y.as<float>(), k,
                      y.count, outside);
      })) {
    no_kernel_for(images.type);
  }
}

void image_crop_and_resize_grad_image(KernelCall& call) {
  const TensorView grads = call.input(0), size = call.input(3);
  const bool nearest = is_nearest(call);
  if (grads.rank() != 4) refuse("grads image must be 4-D");
  if (size.rank() != 1 || size.count != 4) refuse("image_size must be 1-D with 4 elements");
  const Sizes sizes = call.read_integers(size);
  Crops k = crops_of(call, sizes, 1, grads.sizes[1], grads.sizes[2]);
  k.nearest = nearest;
  check_grads(k, grads);
  const TensorView dx = call.allocate_output(0, sizes);
  if (dx.count == 0) return;
  call.zero(dx.data, static_cast<std::size_t>(dx.count) * size_of(dx.type));
  if (grads.count == 0) return;
  // One thread adds in an order of its own.
  const Shape shape = call.deterministic() ? Shape{} : shape_for(grads.count);
  if (dx.type == Type::kFloat) {
    TANDEM_LAUNCH(crop_grad_image_kernel<float>, shape, 0, grads.as<float>(), dx.as<float>(), k,
                  grads.count);
  } else {
    TANDEM_LAUNCH(crop_grad_image_kernel<double>, shape, 0, grads.as<float>(), dx.as<double>(), k,
                  grads.count);
  }
}

void image_crop_and_resize_grad_boxes(KernelCall& call) {
  const TensorView grads = call.input(0), images = call.input(1);
  if (grads.rank() != 4) refuse("grads image must be 4-D");
  const Crops k = crops_of(call, images.sizes, 2, grads.sizes[1], grads.sizes[2]);
  check_grads(k, grads);
  const TensorView y = call.allocate_output(0, {k.boxes, 4});
  if (y.count == 0) return;
  if (!visit_numbers(images.type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        TANDEM_LAUNCH(crop_grad_boxes_kernel<T>, rows_shape(k.boxes, default_block()), 0,
                      grads.as<float>(), images.as<T>(), y.as<float>(), k);
      })) {
    no_kernel_for(images.type);
  }
}

}  // namespace tandem::cuda
