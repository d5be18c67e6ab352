#pragma once

#include <cstdint>

#include "tandem/core/array.h"
#include "tandem/core/shape.h"
#include "tandem/graph/internal/window.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// Half-open range of input positions.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// One pooling: images [batch, height, width, channels] and windows [batch, rows, columns,
/// channels]. Every channel is pooled for itself, so images in NCHW order count as batch * channels
/// images of one channel.
struct PoolGeometry {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  WindowAxis height;
  WindowAxis width;
  Shape output;  ///< in the format's order

  /// The part of the input that window i covers along an axis.
  static Span covered(const WindowAxis& axis, std::int64_t i) {
    const std::int64_t begin = i * axis.stride - axis.pad_before;
    const std::int64_t end = begin + axis.filter;
    return {begin < 0 ? 0 : begin, end > axis.input ? axis.input : end};
  }
  /// The windows that cover input position i.
  static Span covering(const WindowAxis& axis, std::int64_t i) {
    const std::int64_t at = i + axis.pad_before;
    const std::int64_t first = at < axis.filter ? 0 : (at - axis.filter) / axis.stride + 1;
    const std::int64_t end = at / axis.stride + 1;
    return {first, end > axis.output ? axis.output : end};
  }

  std::int64_t image_elements() const { return height.input * width.input * channels; }
  std::int64_t window_elements() const { return height.output * width.output * channels; }
  std::int64_t input_row() const { return width.input * channels; }
  std::int64_t output_row() const { return width.output * channels; }
};

/// Calls f(image, rows of that image) for rows [begin, end) of all images, `rows` to an image.
template <class F>
void by_image(std::int64_t rows, std::int64_t begin, std::int64_t end, F f) {
  while (begin < end) {
    const std::int64_t first = begin % rows;
    const std::int64_t count = end - begin < rows - first ? end - begin : rows - first;
    f(begin / rows, Span{first, first + count});
    begin += count;
  }
}

/// The attributes of a pooling op; inputs `first_size` and the next are ksize and strides for the
/// ops that have them as inputs (0: attributes).
WindowAttrs pool_attrs(const KernelContext& c, int first_size);

/// The geometry for images of this shape; throws InvalidArgumentError if it makes no sense.
PoolGeometry pool_geometry(const WindowAttrs& attrs, const Shape& image);

/// Throws InvalidArgumentError unless input i has this shape.
void require_shape(const KernelContext& c, int i, const Shape& shape, const char* what);

}  // namespace tandem::cpu
