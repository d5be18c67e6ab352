// Colours of images: hue, saturation, contrast; and frames drawn into them.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/support/number_types.h"

namespace tandem::cpu {
namespace {

template <class W>
struct Colour {
  W a, b, c;
};

template <class W>
Colour<W> to_hsv(Colour<W> rgb) {
  // In this order TensorFlow's numbers come of NaN: what follows one replaces it.
  const W most = std::max(rgb.c, std::max(rgb.b, rgb.a));
  const W range = most - std::min(rgb.c, std::min(rgb.b, rgb.a));
  const W saturation = most > 0 ? range / most : W(0);
  const W norm = W(1) / (W(6) * range);
  W hue = rgb.a == most   ? norm * (rgb.b - rgb.c)
          : rgb.b == most ? norm * (rgb.c - rgb.a) + W(2) / W(6)
                          : norm * (rgb.a - rgb.b) + W(4) / W(6);
  if (!(range > 0)) hue = 0;
  if (hue < 0) hue += W(1);
  return {hue, saturation, most};
}

template <class W>
Colour<W> to_rgb(Colour<W> hsv) {
  const W turned = hsv.a * W(6);
  const auto part = [](W x) { return std::min(std::max(x, W(0)), W(1)); };
  const W red = part(std::abs(turned - W(3)) - W(1));
  const W green = part(W(2) - std::abs(turned - W(2)));
  const W blue = part(W(2) - std::abs(turned - W(4)));
  const W grey = W(1) - hsv.b;
  return {(grey + hsv.b * red) * hsv.c, (grey + hsv.b * green) * hsv.c,
          (grey + hsv.b * blue) * hsv.c};
}

// f on every pixel of three channels.
template <class F>
void map_colours(KernelContext& c, F f) {
  const Array& in = c.input(0);
  Array& out = c.allocate_output(0, in.shape());
  with_floating(in.dtype(), [&]<class T>() {
    using W = Wide<T>;
    const T* from = in.data<T>();
    T* to = out.data<T>();
    c.intra_op().parallel_for(in.num_elements() / 3, 10, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 3 * begin; i < 3 * end; i += 3) {
        const Colour<W> made = f(Colour<W>{widen(from[i]), widen(from[i + 1]), widen(from[i + 2])});
        to[i] = static_cast<T>(made.a);
        to[i + 1] = static_cast<T>(made.b);
        to[i + 2] = static_cast<T>(made.c);
      }
    });
  });
}

void require_three_channels(const Array& images) {
  if (images.rank() < 1) {
    throw InvalidArgumentError(cat("input must be at least 1D, but has shape ", images.shape()));
  }
  if (images.shape()[images.rank() - 1] != 3) {
    throw InvalidArgumentError(
        cat("input must have 3 channels but instead has shape ", images.shape()));
  }
}

void rgb_to_hsv(KernelContext& c) {
  require_three_channels(c.input(0));
  map_colours(c, [](auto rgb) { return to_hsv(rgb); });
}

void hsv_to_rgb(KernelContext& c) {
  require_three_channels(c.input(0));
  map_colours(c, [](auto hsv) { return to_rgb(hsv); });
}

float adjustment(const KernelContext& c, const char* name) {
  const Array &images = c.input(0), &by = c.input(1);
  if (images.rank() < 3) {
    throw InvalidArgumentError(cat("input must be at least 3-D, got shape ", images.shape()));
  }
  if (by.rank() != 0) {
    throw InvalidArgumentError(cat(name, " must be scalar: ", by.shape()));
  }
  return *by.data<float>();
}

void adjust_hue(KernelContext& c) {
  const float delta = adjustment(c, "delta");
  require_three_channels(c.input(0));
  map_colours(c, [delta](auto rgb) {
    auto hsv = to_hsv(rgb);
    hsv.a += delta;
    hsv.a -= std::floor(hsv.a);
    return to_rgb(hsv);
  });
}

void adjust_saturation(KernelContext& c) {
  const float scale = adjustment(c, "scale");
  require_three_channels(c.input(0));
  map_colours(c, [scale](auto rgb) {
    auto hsv = to_hsv(rgb);
    hsv.b = std::min(std::max(hsv.b * scale, decltype(hsv.b)(0)), decltype(hsv.b)(1));
    return to_rgb(hsv);
  });
}

void adjust_contrast(KernelContext& c) {
  const float factor = adjustment(c, "contrast_factor");
  const Array& in = c.input(0);
  const Shape& shape = in.shape();
  const int rank = shape.rank();
  const std::int64_t channels = shape[rank - 1];
  const std::int64_t pixels = shape[rank - 2] * shape[rank - 3];
  const std::int64_t batch = shape.product(0, rank - 3);
  Array& out = c.allocate_output(0, shape);
  if (out.num_elements() == 0) return;
  with_floating(in.dtype(), [&]<class T>() {
    const T* from = in.data<T>();
    T* to = out.data<T>();
    const double cost = 2.0 * static_cast<double>(pixels * channels);
    c.intra_op().parallel_for(batch, cost, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> sums(static_cast<std::size_t>(channels));
      std::vector<float> mean(static_cast<std::size_t>(channels));
      for (std::int64_t b = begin; b < end; ++b) {
        const T* image = from + b * pixels * channels;
        T* made = to + b * pixels * channels;
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::int64_t i = 0; i < pixels; ++i) {
          for (std::int64_t k = 0; k < channels; ++k) {
            sums[static_cast<std::size_t>(k)] += widen(image[i * channels + k]);
          }
        }
        for (std::size_t k = 0; k < sums.size(); ++k) {
          mean[k] = static_cast<float>(sums[k] / static_cast<double>(pixels));
        }
        for (std::int64_t i = 0; i < pixels; ++i) {
          for (std::int64_t k = 0; k < channels; ++k) {
            const float value = static_cast<float>(widen(image[i * channels + k]));
            const float centre = mean[static_cast<std::size_t>(k)];
            made[i * channels + k] = static_cast<T>((value - centre) * factor + centre);
          }
        }
      }
    });
  });
}

// ---- Frames ----

constexpr float kFrameColours[10][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

std::vector<std::vector<float>> frame_colours(const KernelContext& c, std::int64_t depth) {
  std::vector<std::vector<float>> colours;
  if (c.num_inputs() == 3) {
    const Array& given = c.input(2);
    if (given.rank() != 2) {
      throw InvalidArgumentError(cat("colors must be a 2-D matrix, got shape ", given.shape()));
    }
    if (given.num_elements() != 0) {
      const std::int64_t width = given.shape()[1];
      if (width < depth) {
        throw InvalidArgumentError(
            cat("colors must have equal or more channels than the image "
                "provided: ",
                width, " vs. ", depth));
      }
      const float* row = given.data<float>();
      for (std::int64_t i = 0; i < given.shape()[0]; ++i, row += width) {
        colours.emplace_back(row, row + width);
      }
    }
  }
  if (colours.empty()) {
    for (const auto& colour : kFrameColours) colours.emplace_back(colour, colour + 4);
    if (depth == 1) {
      for (auto& colour : colours) colour[0] = 1;
    }
  }
  return colours;
}

template <class T>
void draw(KernelContext& c) {
  const Shape& shape = c.input(0).shape();
  const Shape& boxes = c.input(1).shape();
  if (shape.rank() != 4) {
    throw InvalidArgumentError(cat("The rank of the images should be 4, got shape ", shape));
  }
  if (boxes.rank() != 3 || boxes[2] != 4) {
    throw InvalidArgumentError(
        cat("The boxes tensor should have rank 3 and 4 coordinates, got shape ", boxes));
  }
  if (shape[0] != boxes[0]) {
    throw InvalidArgumentError(cat("The batch sizes should be the same: ", shape, " vs. ", boxes));
  }
  const std::int64_t height = shape[1], width = shape[2], depth = shape[3];
  if (depth != 1 && depth != 3 && depth != 4) {
    throw InvalidArgumentError("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
  }
  const auto colours = frame_colours(c, depth);
  Array& out = c.allocate_output(0, shape);
  T* images = out.data<T>();
  std::copy_n(c.input(0).data<T>(), out.num_elements(), images);
  const float* box = c.input(1).data<float>();
  constexpr auto place = [](float x, std::int64_t size) {
    const float at = x * static_cast<float>(size - 1);
    // Far outside is as good as anywhere outside; NaN is nowhere.
    return at != at ? size : static_cast<std::int64_t>(std::clamp(at, -1e9f, 1e9f));
  };
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    T* image = images + b * height * width * depth;
    for (std::int64_t i = 0; i < boxes[1]; ++i, box += 4) {
      const auto& colour = colours[static_cast<std::size_t>(i) % colours.size()];
      const std::int64_t top = place(box[0], height), bottom = place(box[2], height);
      const std::int64_t left = place(box[1], width), right = place(box[3], width);
      if (top > bottom || left > right) continue;
      if (top >= height || bottom < 0 || left >= width || right < 0) continue;
      const std::int64_t y0 = std::max<std::int64_t>(top, 0), y1 = std::min(bottom, height - 1);
      const std::int64_t x0 = std::max<std::int64_t>(left, 0), x1 = std::min(right, width - 1);
      const auto fill = [&](std::int64_t y, std::int64_t x) {
        T* pixel = image + (y * width + x) * depth;
        for (std::int64_t k = 0; k < depth; ++k) {
          pixel[k] = static_cast<T>(colour[static_cast<std::size_t>(k)]);
        }
      };
      for (std::int64_t x = x0; x <= x1; ++x) {
        if (top >= 0) fill(y0, x);
        if (bottom < height) fill(y1, x);
      }
      for (std::int64_t y = y0; y <= y1; ++y) {
        if (left >= 0) fill(y, x0);
        if (right < width) fill(y, x1);
      }
    }
  }
}

const KernelRegistration kToHsv{
    {.op = "RGBToHSV", .types = {{"T", kFloatTypes}}, .run = rgb_to_hsv}};
const KernelRegistration kToRgb{
    {.op = "HSVToRGB", .types = {{"T", kFloatTypes}}, .run = hsv_to_rgb}};
const KernelRegistration kHue{{.op = "AdjustHue", .run = adjust_hue}};
const KernelRegistration kSaturation{{.op = "AdjustSaturation", .run = adjust_saturation}};
const KernelRegistration kContrast{{.op = "AdjustContrastv2", .run = adjust_contrast}};
const KernelRegistration kDrawFloat{
    {.op = "DrawBoundingBoxes", .types = {{"T", {DType::kFloat}}}, .run = draw<float>}};
const KernelRegistration kDrawHalf{
    {.op = "DrawBoundingBoxes", .types = {{"T", {DType::kHalf}}}, .run = draw<Half>}};
const KernelRegistration kDrawV2Float{
    {.op = "DrawBoundingBoxesV2", .types = {{"T", {DType::kFloat}}}, .run = draw<float>}};
const KernelRegistration kDrawV2Half{
    {.op = "DrawBoundingBoxesV2", .types = {{"T", {DType::kHalf}}}, .run = draw<Half>}};

}  // namespace
}  // namespace tandem::cpu
