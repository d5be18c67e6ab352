#pragma once

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// An image batch by strides, whichever data format it has.
struct ImageLayout {
  std::int64_t batch = 0, height = 0, width = 0, channels = 0;
  std::int64_t by_batch = 0, by_row = 0, by_column = 0, by_channel = 0;
};

/// A window that moves over images: of a convolution or of pooling.
struct Window {
  std::int64_t height = 1, width = 1;
  std::int64_t stride_rows = 1, stride_columns = 1;
  std::int64_t dilation_rows = 1, dilation_columns = 1;
  std::int64_t pad_top = 0, pad_left = 0;
  std::int64_t out_height = 0, out_width = 0;
};

/// The layout of a tensor of rank 4 in the call's `data_format` (NHWC or NCHW).
ImageLayout image_layout(const Sizes& sizes, bool channels_first);
/// Sizes of a batch of images in a data format.
Sizes image_sizes(std::int64_t batch, std::int64_t height, std::int64_t width,
                  std::int64_t channels, bool channels_first);
bool channels_first(const KernelCall& call);

/// From the attributes strides, padding, dilations and explicit_paddings, for windows of this size
/// over images of `input`. Throws Failure where they do not fit.
Window window_of(const KernelCall& call, const ImageLayout& input, std::int64_t height,
                 std::int64_t width, bool dilated);

}  // namespace tandem::cuda
