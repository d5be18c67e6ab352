#pragma once

#include "tandem/kernels/cuda/support/kernel_call.h"

namespace tandem::cuda {

/// A batch of volumes by strides, whichever data format it has. An image is a volume of one plane.
/// Axes are planes, rows and columns.
struct VolumeLayout {
  std::size_t rank = 4;
  std::int64_t batch = 0, channels = 0;
  std::int64_t size[3] = {1, 0, 0};
  std::int64_t by_batch = 0, by_channel = 0;
  std::int64_t by[3] = {0, 0, 0};
};

/// A window that moves over volumes: of a convolution or of pooling.
struct Window {
  std::int64_t size[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
  std::int64_t pad[3] = {0, 0, 0};  // in front
  std::int64_t out[3] = {1, 1, 1};  // places of the window
};

/// How a window moves, as attributes (or inputs) of rank 4 or 5 in the data format say.
struct WindowMoves {
  Sizes strides, dilations, explicit_paddings;  // without dilations: none
  std::string padding;
};

/// Whether the attribute `data_format` puts channels in front. Throws Failure for formats that are
/// not those of images or volumes.
bool channels_first(const KernelCall& call);

/// The layout of a tensor of rank 4 or 5.
VolumeLayout volume_layout(const Sizes& sizes, bool channels_first);
/// Sizes of a batch of volumes of rank 4 or 5 in a data format.
Sizes volume_sizes(std::size_t rank, std::int64_t batch, const std::int64_t (&size)[3],
                   std::int64_t channels, bool channels_first);

/// The entries of a list of rank 4 or 5 for planes, rows and columns. Throws Failure, naming
/// `what`, if that of the batch or of the channels is not 1.
void spatial(const Sizes& list, bool channels_first, const char* what, std::int64_t (&to)[3]);

/// The moves by the call's attributes strides, padding and, where asked for, dilations.
WindowMoves moves_of(const KernelCall& call, bool dilated);

/// Windows of this size over volumes. Throws Failure where they do not fit.
Window window_of(const WindowMoves& moves, const VolumeLayout& input, bool channels_first,
                 const std::int64_t (&size)[3]);

}  // namespace tandem::cuda
