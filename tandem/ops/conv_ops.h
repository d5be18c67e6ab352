#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/name_argument.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem::nn {

/// Sizes along height and width: one number for both, or {height, width}.
struct Size2D {
  Size2D(std::int64_t both)
      : height(both), width(both) {}  // NOLINT: `strides = 2` is how users write it
  Size2D(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  std::int64_t height;
  std::int64_t width;
};

/// What happens at the borders of an image: "SAME" (output size is input size / stride, rounded
/// up), "VALID" (windows stay inside), or explicit counts of zeros {{top, bottom}, {left, right}}.
struct Padding {
  /// Throws InvalidArgumentError for null.
  Padding(const char* name)  // NOLINT: `padding = "SAME"` is how users write it
      : kind(internal::name_argument(name, "a padding")) {}
  Padding(std::string name) : kind(std::move(name)) {}  // NOLINT
  Padding(std::pair<std::int64_t, std::int64_t> top_bottom,
          std::pair<std::int64_t, std::int64_t> left_right)
      : kind("EXPLICIT"),
        counts{top_bottom.first, top_bottom.second, left_right.first, left_right.second} {}
  std::string kind;
  std::vector<std::int64_t> counts;  ///< top, bottom, left, right when explicit
};

struct Conv2DOptions {
  String data_format = "NHWC";  ///< or "NCHW"
  Size2D dilations = 1;
};

/// Two-dimensional convolution (in truth a correlation, as everywhere in machine learning).
///
/// `input` is [batch, height, width, in] (NHWC) or [batch, in, height, width] (NCHW); `filters` is
/// [filter height, filter width, in / groups, out], where the number of groups follows from the
/// sizes. half, bfloat16, float, double. Throws InvalidArgumentError if ranks or channels do not
/// fit, or the output would have a negative size.
TANDEM_EXPORT Tensor conv2d(Tensor input, Tensor filters, Size2D strides, const Padding& padding,
                            const Conv2DOptions& options = {});

/// The transpose (gradient with respect to the input) of conv2d: enlarges by the strides. `filters`
/// is [filter height, filter width, out, in]; `output_shape` an int32 or int64 vector of the
/// result's four sizes.
TANDEM_EXPORT Tensor conv2d_transpose(Tensor input, Tensor filters, Tensor output_shape,
                                      Size2D strides, const Padding& padding = "SAME",
                                      const Conv2DOptions& options = {});

/// Convolves every channel with its own filters: `filters` is [filter height, filter width, in,
/// multiplier] and output channel c * multiplier + m comes from input channel c.
TANDEM_EXPORT Tensor depthwise_conv2d(Tensor input, Tensor filters, Size2D strides,
                                      const Padding& padding, const Conv2DOptions& options = {});

/// depthwise_conv2d, then a 1x1 conv2d with `pointwise_filters` [1, 1, in * multiplier, out].
TANDEM_EXPORT Tensor separable_conv2d(Tensor input, Tensor depthwise_filters,
                                      Tensor pointwise_filters, Size2D strides,
                                      const Padding& padding, const Conv2DOptions& options = {});

}  // namespace tandem::nn
