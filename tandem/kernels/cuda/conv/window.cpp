#include "tandem/kernels/cuda/conv/window.h"

#include <algorithm>
#include <string>

namespace tandem::cuda {
namespace {

// The padding before and the number of results along one axis.
void fit(const std::string& padding, std::int64_t input, std::int64_t window, std::int64_t stride,
         std::int64_t dilation, std::int64_t before, std::int64_t after, std::int64_t& pad,
         std::int64_t& output) {
  const std::int64_t effective = (window - 1) * dilation + 1;
  if (padding == "SAME") {
    output = (input + stride - 1) / stride;
    pad = std::max<std::int64_t>(0, (output - 1) * stride + effective - input) / 2;
  } else {
    pad = padding == "EXPLICIT" ? before : 0;
    const std::int64_t padded = padding == "EXPLICIT" ? input + before + after : input;
    output = (padded - effective + stride) / stride;
    if (padded < effective) {
      if (padded - effective + stride < 0) {
        refuse("Computed output size would be negative: the window is larger than the image");
      }
      output = 0;
    }
  }
}

}  // namespace

bool channels_first(const KernelCall& call) {
  const std::string format = call.attr_string("data_format");
  if (format != "NHWC" && format != "NCHW") not_on_gpu("data_format " + format);
  return format == "NCHW";
}

ImageLayout image_layout(const Sizes& sizes, bool first) {
  if (sizes.size() != 4) refuse("images must be 4-dimensional");
  ImageLayout l;
  l.batch = sizes[0];
  l.height = sizes[first ? 2 : 1];
  l.width = sizes[first ? 3 : 2];
  l.channels = sizes[first ? 1 : 3];
  l.by_batch = l.height * l.width * l.channels;
  l.by_row = first ? l.width : l.width * l.channels;
  l.by_column = first ? 1 : l.channels;
  l.by_channel = first ? l.height * l.width : 1;
  return l;
}

Sizes image_sizes(std::int64_t batch, std::int64_t height, std::int64_t width,
                  std::int64_t channels, bool first) {
  return first ? Sizes{batch, channels, height, width} : Sizes{batch, height, width, channels};
}

Window window_of(const KernelCall& call, const ImageLayout& input, std::int64_t height,
                 std::int64_t width, bool dilated) {
  const bool first = channels_first(call);
  const std::size_t row = first ? 2 : 1, column = row + 1;
  const Sizes strides = call.attr_ints("strides");
  if (strides.size() != 4) refuse("Sliding window strides field must specify 4 dimensions");
  if (strides[0] != 1 || strides[first ? 1 : 3] != 1) {
    not_on_gpu("strides in the batch and depth dimensions");
  }
  Window w;
  w.height = height;
  w.width = width;
  w.stride_rows = strides.at(row);
  w.stride_columns = strides.at(column);
  if (dilated) {
    const Sizes dilations = call.attr_ints("dilations");
    w.dilation_rows = dilations.at(row);
    w.dilation_columns = dilations.at(column);
  }
  if (w.height < 1 || w.width < 1 || w.stride_rows < 1 || w.stride_columns < 1 ||
      w.dilation_rows < 1 || w.dilation_columns < 1) {
    refuse("sizes, strides and dilations of windows must be positive");
  }
  const std::string padding = call.attr_string("padding");
  Sizes pads(8);
  if (padding == "EXPLICIT") {
    pads = call.attr_ints("explicit_paddings");
    if (pads.size() != 8 || *std::min_element(pads.begin(), pads.end()) < 0) {
      refuse("explicit_paddings must be 8 values that are not negative");
    }
  }
  fit(padding, input.height, height, w.stride_rows, w.dilation_rows, pads.at(2 * row),
      pads.at(2 * row + 1), w.pad_top, w.out_height);
  fit(padding, input.width, width, w.stride_columns, w.dilation_columns, pads.at(2 * column),
      pads.at(2 * column + 1), w.pad_left, w.out_width);
  return w;
}

}  // namespace tandem::cuda
