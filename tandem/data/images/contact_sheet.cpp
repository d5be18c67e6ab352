#include "tandem/data/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/data/images/canvas.h"

namespace tandem::data {
namespace {

constexpr Colour kPaper{250, 250, 248}, kRight{20, 120, 60}, kWrong{190, 30, 45};
constexpr std::int64_t kImageSide = 56;  // about: images are enlarged by whole numbers
constexpr std::int64_t kGap = 8;
constexpr std::int64_t kTextScale = 2;
constexpr std::int64_t kCaption = Canvas::kTextHeight * kTextScale + 6;

std::vector<std::int64_t> numbers(const Tensor& tensor, const char* name, std::int64_t count) {
  const Array& array = tensor.array();
  if (array.shape() == Shape{count}) {
    if (array.dtype() == DType::kInt64) return tensor.to_vector<std::int64_t>();
    if (array.dtype() == DType::kInt32) {
      const auto values = tensor.data<std::int32_t>();
      return {values.begin(), values.end()};
    }
  }
  throw InvalidArgumentError(cat("render_digits: ", name, " must be int32 or int64 of shape [",
                                 count, "], one for each image, got ", array.dtype(), array.shape(),
                                 "."));
}

// One image per tile: a grey picture, and its caption below.
struct Layout {
  std::int64_t height, width, scale;
  std::int64_t tile_height() const { return height * scale + kCaption + kGap; }
  std::int64_t tile_width() const { return width * scale + kGap; }
};

void draw_image(Canvas& canvas, const Layout& layout, std::int64_t top, std::int64_t left,
                const float* pixels) {
  for (std::int64_t y = 0; y < layout.height; ++y) {
    for (std::int64_t x = 0; x < layout.width; ++x) {
      const float value = *pixels++;
      const float shown = std::isfinite(value) ? std::clamp(value, 0.0f, 1.0f) : 0.0f;
      const auto grey = static_cast<std::uint8_t>(std::lround(shown * 255));
      canvas.fill(top + y * layout.scale, left + x * layout.scale, layout.scale, layout.scale,
                  {grey, grey, grey});
    }
  }
}

}  // namespace

Tensor render_digits(const Tensor& images, const Tensor& labels, const Tensor& predictions,
                     std::int64_t columns) {
  const Array& array = images.array();
  const Shape& shape = array.shape();
  if (array.dtype() != DType::kFloat || shape.rank() < 3 || shape.rank() > 4 ||
      (shape.rank() == 4 && shape[3] != 1) || shape.num_elements() == 0) {
    throw InvalidArgumentError(cat(
        "render_digits: images must be float of shape [n,height,width] or [n,height,width,1] with "
        "at least one image, got ",
        array.dtype(), shape, "."));
  }
  if (columns <= 0) {
    throw InvalidArgumentError(
        cat("render_digits: columns must be at least 1, got ", columns, "."));
  }
  const std::int64_t count = shape[0];
  const auto label = numbers(labels, "labels", count);
  const auto predicted = numbers(predictions, "predictions", count);
  Layout layout{shape[1], shape[2], 1};
  layout.scale = std::max<std::int64_t>(1, kImageSide / std::max(layout.height, layout.width));
  columns = std::min(columns, count);
  const std::int64_t rows = (count + columns - 1) / columns;
  Canvas canvas(rows * layout.tile_height() + kGap, columns * layout.tile_width() + kGap, kPaper);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t top = kGap + i / columns * layout.tile_height();
    const std::int64_t left = kGap + i % columns * layout.tile_width();
    draw_image(canvas, layout, top, left, array.data<float>() + i * layout.height * layout.width);
    const auto at = static_cast<std::size_t>(i);
    const bool right = predicted[at] == label[at];
    const std::string caption = right ? cat(predicted[at]) : cat(predicted[at], "/", label[at]);
    const std::int64_t indent =
        (layout.width * layout.scale - Canvas::text_width(caption, kTextScale)) / 2;
    canvas.write(top + layout.height * layout.scale + 4, left + indent, caption, kTextScale,
                 right ? kRight : kWrong);
  }
  return Tensor(canvas.pixels());
}

}  // namespace tandem::data
