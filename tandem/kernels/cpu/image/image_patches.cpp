// Windows of images and volumes as vectors, and images under projective transforms.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/elements.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

// One spatial axis: `count` windows of `size` elements, `rate` apart.
struct PatchAxis {
  std::int64_t in = 1, size = 1, stride = 1, rate = 1, before = 0, count = 1;
};

// Three axes; the first of an image's is one of a single element.
struct Patches {
  std::int64_t batch = 0, depth = 0;
  PatchAxis axis[3];
  Shape shape;
};

Patches patches_of(const KernelContext& c, int rank, bool has_rates) {
  const Shape& in = c.input(0).shape();
  if (in.rank() != rank) {
    throw InvalidArgumentError(cat("input must be ", rank, "-dimensional, but has shape ", in));
  }
  const auto& sizes = c.attr<Ints>("ksizes");
  const auto& strides = c.attr<Ints>("strides");
  const auto all = static_cast<std::size_t>(rank);
  const Ints rates = has_rates ? c.attr<Ints>("rates") : Ints(all, 1);
  const auto check = [&](const Ints& values, const char* name) {
    bool good = values.size() == all && values.front() == 1 && values.back() == 1;
    for (const std::int64_t value : values) good = good && value >= 1 && value <= INT32_MAX;
    if (!good) {
      throw InvalidArgumentError(
          cat(name, " must be ", rank, " positive sizes, of which the first and last are 1."));
    }
  };
  check(sizes, "ksizes");
  check(strides, "strides");
  check(rates, "rates");
  const bool same = c.attr<std::string>("padding") == "SAME";
  Patches p;
  p.batch = in[0];
  p.depth = in[rank - 1];
  p.shape = Shape{p.batch};
  std::int64_t values = p.depth;
  for (int i = 1; i + 1 < rank; ++i) {
    const auto k = static_cast<std::size_t>(i);
    PatchAxis& a = p.axis[i + 4 - rank];
    a = {in[i], sizes[k], strides[k], rates[k]};
    const std::int64_t reach = (a.size - 1) * a.rate + 1;
    if (same) {
      a.count = (a.in + a.stride - 1) / a.stride;
      a.before = std::max<std::int64_t>((a.count - 1) * a.stride + reach - a.in, 0) / 2;
    } else {
      if (a.in - reach + a.stride < 0) {
        throw InvalidArgumentError(cat("Computed output size would be negative: windows of ", reach,
                                       " on a side of ", a.in));
      }
      a.count = (a.in - reach + a.stride) / a.stride;
    }
    p.shape.add_dim(a.count);
    values = checked_multiply(values, a.size);
  }
  p.shape.add_dim(values);
  return p;
}

void extract(KernelContext& c, const Patches& p) {
  Array& out = c.allocate_output(0, p.shape);
  if (out.num_elements() == 0) return;
  const PatchAxis &planes = p.axis[0], &rows = p.axis[1], &columns = p.axis[2];
  with_element(out.dtype(), [&]<class T>() {
    const T* in = static_cast<const T*>(c.input(0).raw_data());
    T* to = static_cast<T*>(out.raw_data());
    const std::int64_t window = planes.size * rows.size * columns.size * p.depth;
    const std::int64_t lines = p.batch * planes.count * rows.count;
    const double cost = 0.5 * static_cast<double>(columns.count * window);
    c.intra_op().parallel_for(lines, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t line = begin; line < end; ++line) {
        const std::int64_t row = line % rows.count, plane = line / rows.count % planes.count;
        const std::int64_t b = line / rows.count / planes.count;
        T* patch = to + line * columns.count * window;
        for (std::int64_t column = 0; column < columns.count; ++column) {
          for (std::int64_t z = 0; z < planes.size; ++z) {
            const std::int64_t in_z = plane * planes.stride - planes.before + z * planes.rate;
            for (std::int64_t y = 0; y < rows.size; ++y) {
              const std::int64_t in_y = row * rows.stride - rows.before + y * rows.rate;
              const bool inside = in_z >= 0 && in_z < planes.in && in_y >= 0 && in_y < rows.in;
              const std::int64_t first = ((b * planes.in + in_z) * rows.in + in_y) * columns.in;
              for (std::int64_t x = 0; x < columns.size; ++x, patch += p.depth) {
                const std::int64_t in_x =
                    column * columns.stride - columns.before + x * columns.rate;
                if (inside && in_x >= 0 && in_x < columns.in) {
                  copy_elements(patch, in + (first + in_x) * p.depth, p.depth);
                } else {
                  clear_elements(patch, p.depth);
                }
              }
            }
          }
        }
      }
    });
  });
}

void image_patches(KernelContext& c) { extract(c, patches_of(c, 4, true)); }
void volume_patches(KernelContext& c) { extract(c, patches_of(c, 5, false)); }

// ---- Projective transforms ----

enum class Fill { kConstant, kReflect, kWrap, kNearest };

Fill fill_mode(const KernelContext& c) {
  const auto& name = c.attr<std::string>("fill_mode");
  if (name == "CONSTANT") return Fill::kConstant;
  if (name == "REFLECT") return Fill::kReflect;
  if (name == "WRAP") return Fill::kWrap;
  if (name == "NEAREST") return Fill::kNearest;
  throw InvalidArgumentError(
      cat("Invalid mode ", name, ", must be one of [CONSTANT, REFLECT, WRAP, NEAREST]"));
}

// Maps a coordinate outside of [0, size) to one inside, where the mode has a way.
float inside(Fill mode, float at, std::int64_t size) {
  const auto n = static_cast<float>(size);
  if (mode == Fill::kConstant) return at;
  if (mode == Fill::kReflect && (at < 0 || at > n - 1)) {
    if (size <= 1) return 0;
    const float twice = 2 * n;
    if (at < 0) {
      if (at < twice) at += twice * std::trunc(-at / twice);
      at = at < -n ? at + twice : -at - 1;
    } else {
      at -= twice * std::trunc(at / twice);
      if (at >= n) at = twice - at - 1;
    }
  } else if (mode == Fill::kWrap && (at < 0 || at > n - 1)) {
    if (size <= 1) return 0;
    if (at < 0) {
      at += n * (std::trunc(-at / (n - 1)) + 1);
    } else {
      at -= n * std::trunc(at / (n - 1));
    }
  }
  return std::min(std::max(at, 0.0f), n - 1);
}

// The value between four neighbouring pixels, `row` elements from line to line, of which `from` is
// at the top and left. `kDepth` is how many elements a pixel has, or 0 where `depth` says it.
template <int kDepth, class T>
void blend(const T* from, std::int64_t row, std::int64_t depth, float right_share,
           float bottom_share, float left_share, float top_share, T* pixel) {
  const std::int64_t n = kDepth > 0 ? kDepth : depth;
  for (std::int64_t k = 0; k < n; ++k) {
    const auto mixed = [&](const T* left) {
      return left_share * static_cast<float>(left[0]) + right_share * static_cast<float>(left[n]);
    };
    pixel[k] = static_cast<T>(top_share * mixed(from + k) + bottom_share * mixed(from + row + k));
  }
}

template <class T>
void transform_of(KernelContext& c, bool nearest, Fill mode, float fill, Array& out) {
  const Shape &in = c.input(0).shape(), &to = out.shape();
  const std::int64_t height = in[1], width = in[2], depth = in[3];
  const T* images = c.input(0).data<T>();
  const T outside = static_cast<T>(fill);
  const float* transforms = c.input(1).data<float>();
  const bool one = c.input(1).shape()[0] == 1;
  T* made = out.data<T>();
  const float last_x = static_cast<float>(width - 1), last_y = static_cast<float>(height - 1);
  const auto blend_pixels = depth == 3 ? blend<3, T> : depth == 1 ? blend<1, T> : blend<0, T>;
  const double cost = 3.0 * static_cast<double>(to[2] * (depth + 1));
  c.intra_op().parallel_for(to[0] * to[1], cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      const std::int64_t b = line / to[1];
      const auto y = static_cast<float>(line % to[1]);
      const float* t = transforms + (one ? 0 : b * 8);
      const bool affine = t[6] == 0 && t[7] == 0;
      const T* image = images + b * height * width * depth;
      // The pixel at whole numbers, null outside.
      const auto find = [&](float from_y, float from_x) -> const T* {
        // NaN compares false and is outside too.
        const bool there = from_y >= 0 && from_y < static_cast<float>(height) && from_x >= 0 &&
                           from_x < static_cast<float>(width);
        if (!there) return nullptr;
        return image +
               (static_cast<std::int64_t>(from_y) * width + static_cast<std::int64_t>(from_x)) *
                   depth;
      };
      const auto read = [&](const T* found, std::int64_t k) { return found ? found[k] : outside; };
      T* pixel = made + line * to[2] * depth;
      for (std::int64_t column = 0; column < to[2]; ++column, pixel += depth) {
        const auto x = static_cast<float>(column);
        const float projection = affine ? 1.0f : t[6] * x + t[7] * y + 1.0f;
        if (projection == 0) {
          std::fill(pixel, pixel + depth, outside);
          continue;
        }
        float from_x = t[0] * x + t[1] * y + t[2], from_y = t[3] * x + t[4] * y + t[5];
        if (!affine) from_x /= projection, from_y /= projection;
        if (!(from_x >= 0 && from_x <= last_x)) from_x = inside(mode, from_x, width);
        if (!(from_y >= 0 && from_y <= last_y)) from_y = inside(mode, from_y, height);
        if (nearest) {
          const T* found = find(std::round(from_y), std::round(from_x));
          for (std::int64_t k = 0; k < depth; ++k) pixel[k] = read(found, k);
          continue;
        }
        if (from_x >= 0 && from_x < last_x && from_y >= 0 && from_y < last_y) {
          // Truncated, which is faster than std::floor and no different here.
          const auto line_at = static_cast<std::int64_t>(from_y);
          const auto column_at = static_cast<std::int64_t>(from_x);
          const float right_share = from_x - static_cast<float>(column_at);
          const float bottom_share = from_y - static_cast<float>(line_at);
          const float left_share = static_cast<float>(column_at + 1) - from_x;
          const float top_share = static_cast<float>(line_at + 1) - from_y;
          blend_pixels(image + (line_at * width + column_at) * depth, width * depth, depth,
                       right_share, bottom_share, left_share, top_share, pixel);
          continue;
        }
        const float top = std::floor(from_y), left = std::floor(from_x);
        const float bottom = top + 1, right = left + 1;
        const T *top_left = find(top, left), *top_right = find(top, right);
        const T *bottom_left = find(bottom, left), *bottom_right = find(bottom, right);
        for (std::int64_t k = 0; k < depth; ++k) {
          const auto mixed = [&](const T* at_left, const T* at_right) {
            return (right - from_x) * static_cast<float>(read(at_left, k)) +
                   (from_x - left) * static_cast<float>(read(at_right, k));
          };
          pixel[k] = static_cast<T>((bottom - from_y) * mixed(top_left, top_right) +
                                    (from_y - top) * mixed(bottom_left, bottom_right));
        }
      }
    }
  });
}

void transform(KernelContext& c) {
  const auto& interpolation = c.attr<std::string>("interpolation");
  if (interpolation != "NEAREST" && interpolation != "BILINEAR") {
    throw InvalidArgumentError(
        cat("Invalid interpolation ", interpolation, ", must be NEAREST or BILINEAR"));
  }
  const Fill mode = fill_mode(c);
  const Shape &in = c.input(0).shape(), &transforms = c.input(1).shape();
  if (in.rank() != 4) throw InvalidArgumentError("Input images must have rank 4");
  if (transforms.rank() != 2 || transforms[1] != 8 ||
      (transforms[0] != in[0] && transforms[0] != 1)) {
    throw InvalidArgumentError(
        cat("Input transform should be num_images x 8 or 1 x 8, but has shape ", transforms));
  }
  const Array& size = c.input(2);
  if (size.rank() != 1 || size.num_elements() != 2) {
    throw InvalidArgumentError(
        cat("output shape must be 1-dimensional with 2 elements, but has shape ", size.shape()));
  }
  const std::int64_t height = size.data<std::int32_t>()[0], width = size.data<std::int32_t>()[1];
  if (height <= 0 || width <= 0) {
    throw InvalidArgumentError(cat("output shape must be positive, but is ", height, " x ", width));
  }
  float fill = 0;
  if (c.num_inputs() == 4) {
    if (c.input(3).rank() != 0) throw InvalidArgumentError("fill_value must be a scalar");
    fill = *c.input(3).data<float>();
  }
  Array& out = c.allocate_output(0, Shape{in[0], height, width, in[3]});
  if (out.num_elements() == 0) return;
  with_type<std::uint8_t, std::int32_t, std::int64_t, Half, BFloat16, float, double>(
      out.dtype(),
      [&]<class T>() { transform_of<T>(c, interpolation == "NEAREST", mode, fill, out); });
}

const KernelRegistration kPatches{
    {.op = "ExtractImagePatches", .types = {{"T", kPodTypes}}, .run = image_patches}};
const KernelRegistration kVolumes{
    {.op = "ExtractVolumePatches", .types = {{"T", kRealTypes}}, .run = volume_patches}};
const KernelRegistration kTransformV2{{.op = "ImageProjectiveTransformV2", .run = transform}};
const KernelRegistration kTransformV3{{.op = "ImageProjectiveTransformV3", .run = transform}};

}  // namespace
}  // namespace tandem::cpu
