// Resizing images: bilinear, cubic, by areas, nearest pixel; and their gradients.

#include "tandem/kernels/cpu/image/resize.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/elementwise/float16_rows.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {

Placement::Placement(const KernelContext& c) : align_corners(c.attr<bool>("align_corners")) {
  const AttrValue* half = c.find_attr("half_pixel_centers");
  half_pixel_centers = half != nullptr && *half->get_if<bool>();
  if (align_corners && half_pixel_centers) {
    throw InvalidArgumentError("If half_pixel_centers is True, align_corners must be False.");
  }
}

namespace {

void require_images(const Shape& shape, const char* name) {
  if (shape.rank() != 4) {
    throw InvalidArgumentError(cat(name, " must be 4-dimensional, but has shape ", shape));
  }
}

void require_sizes(const Resize& r) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  if (r.out_height <= 0 || r.out_width <= 0) {
    throw InvalidArgumentError(
        cat("output dimensions must be positive, but are ", r.out_height, " and ", r.out_width));
  }
  if (r.channels <= 0) throw InvalidArgumentError("image must have at least one channel");
  if (r.in_height <= 0 || r.in_width <= 0) {
    throw InvalidArgumentError("input image must be of non-zero size");
  }
  if (r.in_height > kLargest || r.in_width > kLargest) {
    throw InvalidArgumentError("input sizes must be between 0 and max int32");
  }
}

}  // namespace

void set_new_size(Resize& r, const Array& size) {
  if (size.rank() != 1 || size.num_elements() != 2) {
    throw InvalidArgumentError(
        cat("shape_t must be a vector of two sizes, but has shape ", size.shape()));
  }
  r.out_height = size.data<std::int32_t>()[0];
  r.out_width = size.data<std::int32_t>()[1];
  require_sizes(r);
}

Resize resize_case(const KernelContext& c) {
  const Shape& images = c.input(0).shape();
  require_images(images, "input");
  Resize r{images[0], images[3], images[1], images[2]};
  set_new_size(r, c.input(1));
  return r;
}

Resize resize_grad_case(const Shape& grads, const Shape& images) {
  require_images(grads, "input_grad");
  require_images(images, "original_image");
  const Resize r{images[0], images[3], images[1], images[2], grads[1], grads[2]};
  require_sizes(r);
  if (grads[0] != images[0] || grads[3] != images[3]) {
    throw InvalidArgumentError(cat("batch and channels of the gradient, ", grads,
                                   ", must be those of the image, ", images));
  }
  return r;
}

Taps bilinear_taps(const Placement& place, std::int64_t in, std::int64_t out) {
  Taps taps(out, 2);
  const float scale = place.scale(in, out);
  for (std::int64_t i = 0; i < out; ++i) {
    const float at = place.at(i, scale);
    const float floor = std::floor(at);
    const auto upper = std::min(static_cast<std::int64_t>(std::ceil(at)), in - 1);
    const auto lower = std::max<std::int64_t>(static_cast<std::int64_t>(floor), 0);
    taps.index_at(i, 0) = std::min(lower, in - 1);
    taps.index_at(i, 1) = std::max<std::int64_t>(upper, 0);
    taps.weight_at(i, 1) = at - floor;
    taps.weight_at(i, 0) = 1.0f - (at - floor);
  }
  return taps;
}

std::vector<std::int64_t> nearest_pixels(const Placement& place, std::int64_t in,
                                         std::int64_t out) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(out));
  const float scale = place.scale(in, out);
  for (std::int64_t i = 0; i < out; ++i) {
    const float x = static_cast<float>(i) + (place.half_pixel_centers ? 0.5f : 0.0f);
    const float at = place.align_corners ? std::round(x * scale) : std::floor(x * scale);
    index[static_cast<std::size_t>(i)] =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, in - 1);
  }
  return index;
}

namespace {

// The cubic's weights at distances δ and 1 + δ, for δ in steps of 1/1024, as TensorFlow looks them
// up.
constexpr std::int64_t kSteps = 1024;
struct CubicTable {
  float near[kSteps + 1], far[kSteps + 1];
  explicit CubicTable(double a) {
    for (std::int64_t i = 0; i <= kSteps; ++i) {
      float x = static_cast<float>(static_cast<double>(i) / kSteps);
      const auto af = static_cast<float>(a);
      near[i] = ((af + 2) * x - (af + 3)) * x * x + 1;
      x += 1.0f;
      far[i] = ((af * x - 5 * af) * x + 8 * af) * x - 4 * af;
    }
  }
};

}  // namespace

Taps cubic_taps(const Placement& place, std::int64_t in, std::int64_t out) {
  static const CubicTable kLegacy(-0.75), kKeys(-0.5);
  const bool keys = place.half_pixel_centers;
  const CubicTable& table = keys ? kKeys : kLegacy;
  Taps taps(out, 4);
  const float scale = place.scale(in, out);
  for (std::int64_t i = 0; i < out; ++i) {
    const float at = place.at(i, scale);
    const auto floor = static_cast<std::int64_t>(std::floor(at));
    const std::int64_t step = std::lrintf((at - static_cast<float>(floor)) * kSteps);
    const float weights[4] = {table.far[step], table.near[step], table.near[kSteps - step],
                              table.far[kSteps - step]};
    float sum = 0;
    for (std::int64_t t = 0; t < 4; ++t) {
      const std::int64_t wanted = floor - 1 + t;
      const std::int64_t index = std::clamp<std::int64_t>(wanted, 0, in - 1);
      const float weight = keys && index != wanted ? 0.0f : weights[t];
      taps.index_at(i, t) = index;
      taps.weight_at(i, t) = weight;
      sum += weight;
    }
    if (keys && std::abs(sum) >= 1000.0f * std::numeric_limits<float>::min()) {
      for (std::int64_t t = 0; t < 4; ++t) taps.weight_at(i, t) *= 1.0f / sum;
    }
  }
  return taps;
}

// An output pixel is the mean of the area that it covers.
Taps area_taps(const Placement& place, std::int64_t in, std::int64_t out) {
  float scale = place.scale(in, out);
  // Corners of one pixel are no distance apart.
  if (scale == 0) scale = static_cast<float>(in) / static_cast<float>(out);
  const auto range = [&](std::int64_t i) {
    const float begin = static_cast<float>(i) * scale, end = static_cast<float>(i + 1) * scale;
    return std::pair(begin, end);
  };
  std::int64_t most = 1;
  for (std::int64_t i = 0; i < out; ++i) {
    const auto [begin, end] = range(i);
    most = std::max(most, static_cast<std::int64_t>(std::ceil(end)) -
                              static_cast<std::int64_t>(std::floor(begin)));
  }
  Taps taps(out, most);
  for (std::int64_t i = 0; i < out; ++i) {
    const auto [begin, end] = range(i);
    const auto first = static_cast<std::int64_t>(std::floor(begin));
    const auto last = static_cast<std::int64_t>(std::ceil(end));
    for (std::int64_t t = 0; t < most; ++t) {
      const std::int64_t k = first + t;
      const auto x = static_cast<float>(k);
      float weight = 0;
      if (k < last) {
        weight = x < begin ? (x + 1 > end ? scale : x + 1 - begin) : (x + 1 > end ? end - x : 1.0f);
      }
      taps.index_at(i, t) = std::clamp<std::int64_t>(std::min(k, last - 1), 0, in - 1);
      taps.weight_at(i, t) = weight / scale;
    }
  }
  return taps;
}

namespace {

using MakeTaps = Taps (*)(const Placement&, std::int64_t in, std::int64_t out);

template <MakeTaps make, Mix mix>
void resize(KernelContext& c) {
  const Placement place(c);
  const Resize r = resize_case(c);
  Array& out = c.allocate_output(0, r.out_shape());
  if (out.num_elements() == 0) return;
  resample(c, r, make(place, r.in_height, r.out_height), make(place, r.in_width, r.out_width), mix,
           c.input(0), out.data<float>());
}

template <MakeTaps make>
void resize_grad(KernelContext& c) {
  const Placement place(c);
  const Resize r = resize_grad_case(c.input(0).shape(), c.input(1).shape());
  Array& out = c.allocate_output(0, r.in_shape());
  if (out.num_elements() == 0) return;
  resample_transposed(c, r, make(place, r.in_height, r.out_height),
                      make(place, r.in_width, r.out_width), c.input(0), out);
}

// ---- Nearest pixel ----

void resize_nearest(KernelContext& c) {
  const Placement place(c);
  const Resize r = resize_case(c);
  Array& out = c.allocate_output(0, r.out_shape());
  if (out.num_elements() == 0) return;
  const auto ys = nearest_pixels(place, r.in_height, r.out_height);
  const auto xs = nearest_pixels(place, r.in_width, r.out_width);
  with_element(out.dtype(), [&]<class T>() {
    const T* in = static_cast<const T*>(c.input(0).raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const std::int64_t n = r.channels, in_row = r.in_width * n, out_row = r.out_width * n;
    c.intra_op().parallel_for(
        r.batch * r.out_height, 0.5 * static_cast<double>(out_row),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t y = i % r.out_height;
            T* row = to + i * out_row;
            if (i > begin && y > 0 &&
                ys[static_cast<std::size_t>(y)] == ys[static_cast<std::size_t>(y - 1)]) {
              copy_elements(row, row - out_row, out_row);
              continue;
            }
            const T* from =
                in + (i / r.out_height * r.in_height + ys[static_cast<std::size_t>(y)]) * in_row;
            for (std::int64_t x = 0; x < r.out_width; ++x) {
              const T* pixel = from + xs[static_cast<std::size_t>(x)] * n;
              for (std::int64_t k = 0; k < n; ++k) row[x * n + k] = pixel[k];
            }
          }
        });
  });
}

void resize_nearest_grad(KernelContext& c) {
  const Placement place(c);
  // `size` is that of the image whose gradient is asked for.
  const Resize to = resize_case(c);
  const Resize r{to.batch, to.channels, to.out_height, to.out_width, to.in_height, to.in_width};
  Array& out = c.allocate_output(0, r.in_shape());
  if (out.num_elements() == 0) return;
  const auto ys = nearest_pixels(place, r.in_height, r.out_height);
  const auto xs = nearest_pixels(place, r.in_width, r.out_width);
  with_addable(out.dtype(), [&]<class T>() {
    if constexpr (!is_complex_type<T>) {
      using W = Wide<T>;
      const T* grads = static_cast<const T*>(c.input(0).raw_data());
      T* image = static_cast<T*>(out.raw_data());
      const std::int64_t n = r.channels, row = r.in_width * n;
      const double cost = static_cast<double>(row + r.out_height * r.out_width / r.in_height * n);
      const auto run = [&](std::int64_t begin, std::int64_t end) {
        std::vector<W> sums(is_float16<T> ? static_cast<std::size_t>(row) : 0);
        for (std::int64_t i = begin; i < end; ++i) {
          T* made = image + i * row;
          W* sum = sums.data();
          if constexpr (!is_float16<T>) sum = made;
          std::fill(sum, sum + row, W(0));
          // The rows that this one was taken for lie side by side.
          const auto [first, last] = std::equal_range(ys.begin(), ys.end(), i % r.in_height);
          const T* from =
              grads + (i / r.in_height * r.out_height + (first - ys.begin())) * r.out_width * n;
          for (auto y = first; y != last; ++y) {
            for (std::int64_t x = 0; x < r.out_width; ++x, from += n) {
              W* pixel = sum + xs[static_cast<std::size_t>(x)] * n;
              for (std::int64_t k = 0; k < n; ++k) {
                pixel[k] = static_cast<W>(pixel[k] + static_cast<W>(from[k]));
              }
            }
          }
          if constexpr (is_float16<T>) from_floats(sum, made, row);
        }
      };
      c.intra_op().parallel_for(r.batch * r.in_height, cost, run);
    }
  });
}

constexpr DTypeSet kImageTypes =
    kFloatTypes | DTypeSet{DType::kInt8,   DType::kUint8, DType::kInt16,
                           DType::kUint16, DType::kInt32, DType::kInt64};
constexpr TypeConstraint kImages{"T", kImageTypes};
constexpr TypeConstraint kFloats{"T", kFloatTypes};

const KernelRegistration kBilinear{
    {.op = "ResizeBilinear", .types = {kImages}, .run = resize<bilinear_taps, Mix::kLerp>}};
const KernelRegistration kBilinearGrad{
    {.op = "ResizeBilinearGrad", .types = {kFloats}, .run = resize_grad<bilinear_taps>}};
const KernelRegistration kBicubic{
    {.op = "ResizeBicubic", .types = {kImages}, .run = resize<cubic_taps, Mix::kWeights>}};
const KernelRegistration kBicubicGrad{
    {.op = "ResizeBicubicGrad", .types = {kFloats}, .run = resize_grad<cubic_taps>}};
const KernelRegistration kArea{
    {.op = "ResizeArea", .types = {kImages}, .run = resize<area_taps, Mix::kWeights>}};
const KernelRegistration kNearest{
    {.op = "ResizeNearestNeighbor", .types = {kImages}, .run = resize_nearest}};
const KernelRegistration kNearestGrad{
    {.op = "ResizeNearestNeighborGrad", .types = {kImages}, .run = resize_nearest_grad}};

}  // namespace
}  // namespace tandem::cpu
