// CropAndResize and its gradients.

#include <algorithm>
#include <cmath>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/in_float.h"
#include "tandem/kernels/cpu/norm/rows.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

struct Crops {
  std::int64_t boxes, height, width;                     // of the crops
  std::int64_t batch, image_height, image_width, depth;  // of the images
  const float* box;
  const std::int32_t* image_of;
};

// Where the pixels of a crop lie along one axis of the image.
struct CropAxis {
  float begin, step, last, ratio;
  CropAxis(float from, float to, std::int64_t image, std::int64_t crop)
      : last(static_cast<float>(image - 1)) {
    ratio = crop > 1 ? last / static_cast<float>(crop - 1) : 0;
    step = crop > 1 ? (to - from) * last / static_cast<float>(crop - 1) : 0;
    begin = crop > 1 ? from * last : 0.5f * (from + to) * last;
  }
  float at(std::int64_t i) const { return begin + static_cast<float>(i) * step; }
  bool inside(float x) const { return x >= 0 && x <= last; }
};

Crops check(const Shape& images, const Array& boxes, const Array& indices, std::int64_t height,
            std::int64_t width) {
  if (images.rank() != 4) {
    throw InvalidArgumentError(cat("input image must be 4-D, but has shape ", images));
  }
  if (images[1] <= 0 || images[2] <= 0) {
    throw InvalidArgumentError("image dimensions must be positive");
  }
  if (boxes.rank() != 2 || boxes.shape()[1] != 4) {
    throw InvalidArgumentError(
        cat("boxes must be 2-D of 4 columns, but have shape ", boxes.shape()));
  }
  if (indices.rank() != 1 || indices.shape()[0] != boxes.shape()[0]) {
    throw InvalidArgumentError(cat("box_index has incompatible shape ", indices.shape(), " for ",
                                   boxes.shape()[0], " boxes"));
  }
  if (height <= 0 || width <= 0) {
    throw InvalidArgumentError(
        cat("crop dimensions must be positive, but are ", height, " and ", width));
  }
  for (const std::int32_t i : indices.values<std::int32_t>()) {
    if (i < 0 || i >= images[0]) {
      throw OutOfRangeError(
          cat("box_index has values outside [0, batch_size): ", i, " of ", images[0]));
    }
  }
  for (const float edge : boxes.values<float>()) {
    if (!std::isfinite(edge)) {
      throw InvalidArgumentError(cat("boxes must be finite numbers, but hold ", edge));
    }
  }
  return {boxes.shape()[0],
          height,
          width,
          images[0],
          images[1],
          images[2],
          images[3],
          boxes.data<float>(),
          indices.data<std::int32_t>()};
}

bool is_nearest(const KernelContext& c) {
  const auto& method = c.attr<std::string>("method");
  if (method != "bilinear" && method != "nearest") {
    throw InvalidArgumentError(cat("method must be 'bilinear' or 'nearest', not '", method, "'."));
  }
  return method == "nearest";
}

Shape four_sizes(const Array& sizes) {
  if (sizes.rank() != 1 || sizes.num_elements() != 4) {
    throw InvalidArgumentError(
        cat("image_size must be 1-D with 4 elements, but has shape ", sizes.shape()));
  }
  const auto values = sizes.values<std::int32_t>();
  return Shape(std::vector<std::int64_t>(values.begin(), values.end()));
}

void require_grads(const Crops& k, const Shape& grads) {
  if (grads[0] != k.boxes || grads[3] != k.depth) {
    throw InvalidArgumentError(
        cat("grads of shape ", grads, " do not fit ", k.boxes, " boxes and depth ", k.depth));
  }
}

void crop(KernelContext& c) {
  const Array& size = c.input(3);
  if (size.rank() != 1 || size.num_elements() != 2) {
    throw InvalidArgumentError(
        cat("crop_size must be 1-D with 2 elements, but has shape ", size.shape()));
  }
  const bool nearest = is_nearest(c);
  const Crops k = check(c.input(0).shape(), c.input(1), c.input(2), size.data<std::int32_t>()[0],
                        size.data<std::int32_t>()[1]);
  const float outside = c.attr<float>("extrapolation_value");
  Array& out = c.allocate_output(0, Shape{k.boxes, k.height, k.width, k.depth});
  if (out.num_elements() == 0) return;
  with_real(c.input(0).dtype(), [&]<class T>() {
    const T* images = c.input(0).data<T>();
    float* to = out.data<float>();
    const std::int64_t row = k.image_width * k.depth, crop_row = k.width * k.depth;
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t b = i / k.height;
        const float* box = k.box + b * 4;
        const T* image = images + k.image_of[b] * k.image_height * row;
        const CropAxis ys(box[0], box[2], k.image_height, k.height);
        const CropAxis xs(box[1], box[3], k.image_width, k.width);
        float* pixel = to + i * crop_row;
        const float y = ys.at(i % k.height);
        if (!ys.inside(y)) {
          std::fill(pixel, pixel + crop_row, outside);
          continue;
        }
        const T* top =
            image + static_cast<std::int64_t>(nearest ? std::round(y) : std::floor(y)) * row;
        const T* bottom = image + static_cast<std::int64_t>(std::ceil(y)) * row;
        const float down = y - std::floor(y);
        for (std::int64_t j = 0; j < k.width; ++j, pixel += k.depth) {
          const float x = xs.at(j);
          if (!xs.inside(x)) {
            std::fill(pixel, pixel + k.depth, outside);
            continue;
          }
          if (nearest) {
            const T* from = top + static_cast<std::int64_t>(std::round(x)) * k.depth;
            std::transform(from, from + k.depth, pixel,
                           [](T value) { return static_cast<float>(value); });
            continue;
          }
          const std::int64_t left = static_cast<std::int64_t>(std::floor(x)) * k.depth;
          const std::int64_t right = static_cast<std::int64_t>(std::ceil(x)) * k.depth;
          const float across = x - std::floor(x);
          for (std::int64_t d = 0; d < k.depth; ++d) {
            const auto top_left = static_cast<float>(top[left + d]);
            const auto bottom_left = static_cast<float>(bottom[left + d]);
            const float up = top_left + (static_cast<float>(top[right + d]) - top_left) * across;
            const float low =
                bottom_left + (static_cast<float>(bottom[right + d]) - bottom_left) * across;
            pixel[d] = up + (low - up) * down;
          }
        }
      }
    };
    c.intra_op().parallel_for(k.boxes * k.height, 3.0 * static_cast<double>(crop_row), run);
  });
}

Shape grads_shape(const KernelContext& c) {
  const Shape& grads = c.input(0).shape();
  if (grads.rank() != 4) {
    throw InvalidArgumentError(cat("grads image must be 4-D, but has shape ", grads));
  }
  return grads;
}

void crop_grad_image(KernelContext& c) {
  const bool nearest = is_nearest(c);
  const Shape grads = grads_shape(c);
  const Shape image_shape = four_sizes(c.input(3));
  const Crops k = check(image_shape, c.input(1), c.input(2), grads[1], grads[2]);
  require_grads(k, grads);
  Array& out = c.allocate_output(0, image_shape);
  with_floating(out.dtype(), [&]<class T>() {
    using W = Wide<T>;
    const float* from = c.input(0).data<float>();
    const std::int64_t row = k.image_width * k.depth;
    std::vector<W> short_sums(is_float16<T> ? static_cast<std::size_t>(out.num_elements())
                                            : std::size_t{0});
    W* sums = short_sums.data();
    if constexpr (!is_float16<T>) sums = out.data<T>();
    // Every share looks at all crops, in order, and adds what falls into its rows of all images.
    const auto share = [&](std::int64_t first_row, std::int64_t last_row) {
      std::fill(sums + first_row * row, sums + last_row * row, W(0));
      for (std::int64_t b = 0; b < k.boxes; ++b) {
        const float* box = k.box + b * 4;
        const std::int64_t image = k.image_of[b] * k.image_height;
        if (image + k.image_height <= first_row || image >= last_row) continue;
        const CropAxis ys(box[0], box[2], k.image_height, k.height);
        const CropAxis xs(box[1], box[3], k.image_width, k.width);
        for (std::int64_t i = 0; i < k.height; ++i) {
          const float y = ys.at(i);
          if (!ys.inside(y)) continue;
          const auto mine = [&](float to_y) -> W* {
            const std::int64_t at = image + static_cast<std::int64_t>(to_y);
            return at >= first_row && at < last_row ? sums + at * row : nullptr;
          };
          const float top = std::floor(y), down = y - top;
          W* const upper = mine(nearest ? std::round(y) : top);
          W* const lower = nearest ? nullptr : mine(std::ceil(y));
          if (upper == nullptr && lower == nullptr) continue;
          const float* grad = from + (b * k.height + i) * k.width * k.depth;
          for (std::int64_t j = 0; j < k.width; ++j, grad += k.depth) {
            const float x = xs.at(j);
            if (!xs.inside(x)) continue;
            const auto add = [&](W* to_row, float to_x, float weight) {
              combine_rows(to_row + static_cast<std::int64_t>(to_x) * k.depth, grad, k.depth,
                           [weight](W sum, float g) { return sum + static_cast<W>(g * weight); });
            };
            if (nearest) {
              add(upper, std::round(x), 1);
              continue;
            }
            const float left = std::floor(x), right = std::ceil(x), across = x - left;
            if (upper != nullptr) {
              add(upper, left, (1 - down) * (1 - across));
              add(upper, right, (1 - down) * across);
            }
            if (lower != nullptr) {
              add(lower, left, down * (1 - across));
              add(lower, right, down * across);
            }
          }
        }
      }
    };
    const std::int64_t rows = k.batch * k.image_height;
    for_each_share(c.intra_op(), rows, c.input(0).num_elements(), row, share);
    if constexpr (is_float16<T>) {
      from_float(c.intra_op(), sums, out.dtype(), out.raw_data(), out.num_elements());
    }
  });
}

void crop_grad_boxes(KernelContext& c) {
  const Shape grads = grads_shape(c);
  const Crops k = check(c.input(1).shape(), c.input(2), c.input(3), grads[1], grads[2]);
  require_grads(k, grads);
  Array& out = c.allocate_output(0, Shape{k.boxes, 4});
  float* to = out.data<float>();
  std::fill(to, to + out.num_elements(), 0.0f);
  with_real(c.input(1).dtype(), [&]<class T>() {
    const T* images = c.input(1).data<T>();
    const float* from = c.input(0).data<float>();
    const std::int64_t row = k.image_width * k.depth;
    for (std::int64_t b = 0; b < k.boxes; ++b) {
      const float* box = k.box + b * 4;
      float* result = to + b * 4;
      const T* image = images + k.image_of[b] * k.image_height * row;
      const CropAxis ys(box[0], box[2], k.image_height, k.height);
      const CropAxis xs(box[1], box[3], k.image_width, k.width);
      for (std::int64_t i = 0; i < k.height; ++i) {
        const float y = ys.at(i);
        if (!ys.inside(y)) continue;
        const T* top = image + static_cast<std::int64_t>(std::floor(y)) * row;
        const T* bottom = image + static_cast<std::int64_t>(std::ceil(y)) * row;
        const float down = y - std::floor(y);
        for (std::int64_t j = 0; j < k.width; ++j) {
          const float x = xs.at(j);
          if (!xs.inside(x)) continue;
          const std::int64_t left = static_cast<std::int64_t>(std::floor(x)) * k.depth;
          const std::int64_t right = static_cast<std::int64_t>(std::ceil(x)) * k.depth;
          const float across = x - std::floor(x);
          const float* grad = from + ((b * k.height + i) * k.width + j) * k.depth;
          float slope_y = 0, slope_x = 0;
          for (std::int64_t d = 0; d < k.depth; ++d) {
            const auto tl = static_cast<float>(top[left + d]);
            const auto tr = static_cast<float>(top[right + d]);
            const auto bl = static_cast<float>(bottom[left + d]);
            const auto br = static_cast<float>(bottom[right + d]);
            slope_y += ((1 - across) * (bl - tl) + across * (br - tr)) * grad[d];
            slope_x += ((1 - down) * (tr - tl) + down * (br - bl)) * grad[d];
          }
          const auto share = [](const CropAxis& axis, std::int64_t place, std::int64_t crop,
                                float slope, float& first, float& second) {
            if (crop > 1) {
              const float moved = static_cast<float>(place) * axis.ratio;
              first += slope * (axis.last - moved);
              second += slope * moved;
            } else {
              first += slope * 0.5f * axis.last;
              second += slope * 0.5f * axis.last;
            }
          };
          share(ys, i, k.height, slope_y, result[0], result[2]);
          share(xs, j, k.width, slope_x, result[1], result[3]);
        }
      }
    }
  });
}

constexpr DTypeSet kImageTypes{DType::kUint8, DType::kUint16, DType::kInt8,
                               DType::kInt16, DType::kInt32,  DType::kInt64,
                               DType::kHalf,  DType::kFloat,  DType::kDouble};
const KernelRegistration kCrop{{.op = "CropAndResize", .types = {{"T", kImageTypes}}, .run = crop}};
const KernelRegistration kCropGradImage{
    {.op = "CropAndResizeGradImage",
     .types = {{"T", {DType::kHalf, DType::kFloat, DType::kDouble}}},
     .run = crop_grad_image}};
const KernelRegistration kCropGradBoxes{
    {.op = "CropAndResizeGradBoxes", .types = {{"T", kImageTypes}}, .run = crop_grad_boxes}};

}  // namespace
}  // namespace tandem::cpu
