#include "tandem/kernels/cuda/conv/window.h"

#include <algorithm>
#include <string>

namespace tandem::cuda {
namespace {

// The padding in front and the number of results along one axis.
void fit(const std::string& padding, std::int64_t input, std::int64_t before, std::int64_t after,
         Window& w, int axis) {
  const std::int64_t stride = w.stride[axis];
  const std::int64_t effective = (w.size[axis] - 1) * w.dilation[axis] + 1;
  if (padding == "SAME") {
    w.out[axis] = (input + stride - 1) / stride;
    w.pad[axis] = std::max<std::int64_t>(0, (w.out[axis] - 1) * stride + effective - input) / 2;
    return;
  }
  const bool given = padding == "EXPLICIT";
  const std::int64_t padded = given ? input + before + after : input;
  w.pad[axis] = given ? before : 0;
  w.out[axis] = (padded - effective + stride) / stride;
  if (padded >= effective) return;
  if (padded - effective + stride < 0) {
    refuse("Computed output size would be negative: the window is larger than the image");
  }
  w.out[axis] = 0;
}

}  // namespace

bool channels_first(const KernelCall& call) {
  const std::string format = call.attr_string("data_format");
  if (format == "NCHW" || format == "NCDHW") return true;
  if (format != "NHWC" && format != "NDHWC") not_on_gpu("data_format " + format);
  return false;
}

VolumeLayout volume_layout(const Sizes& sizes, bool first) {
  VolumeLayout l;
  const std::size_t rank = sizes.size(), planes = rank - 4;
  l.rank = rank;
  l.batch = sizes[0];
  l.channels = sizes[first ? 1 : rank - 1];
  for (std::size_t i = 0; i < 2 + planes; ++i)
    l.size[3 - 2 - planes + i] = sizes[i + (first ? 2 : 1)];
  std::int64_t stride = first ? 1 : l.channels;
  for (int axis = 2; axis >= 0; --axis) {
    l.by[axis] = stride;
    stride *= l.size[axis];
  }
  l.by_channel = first ? stride : 1;
  l.by_batch = first ? stride * l.channels : stride;
  return l;
}

Sizes volume_sizes(std::size_t rank, std::int64_t batch, const std::int64_t (&size)[3],
                   std::int64_t channels, bool first) {
  Sizes sizes{batch};
  if (first) sizes.push_back(channels);
  sizes.insert(sizes.end(), size + (rank == 5 ? 0 : 1), size + 3);
  if (!first) sizes.push_back(channels);
  return sizes;
}

void spatial(const Sizes& list, bool first, const char* what, std::int64_t (&to)[3]) {
  const std::size_t rank = list.size(), planes = rank - 4;
  if (rank != 4 && rank != 5) {
    refuse(std::string("Sliding window ") + what + " field must specify 4 or 5 dimensions");
  }
  if (list[0] != 1 || list[first ? 1 : rank - 1] != 1) {
    const std::string text = std::string(what) + " over the batch or over channels";
    if (rank == 5) refuse(text);
    not_on_gpu(text);
  }
  to[0] = 1;
  for (std::size_t i = 0; i < 2 + planes; ++i) to[3 - 2 - planes + i] = list[i + (first ? 2 : 1)];
}

WindowMoves moves_of(const KernelCall& call, bool dilated) {
  WindowMoves moves;
  moves.strides = call.attr_ints("strides");
  moves.padding = call.attr_string("padding");
  if (dilated) moves.dilations = call.attr_ints("dilations");
  if (moves.padding == "EXPLICIT") moves.explicit_paddings = call.attr_ints("explicit_paddings");
  return moves;
}

Window window_of(const WindowMoves& moves, const VolumeLayout& input, bool first,
                 const std::int64_t (&size)[3]) {
  Window w;
  if (moves.strides.size() != input.rank ||
      (!moves.dilations.empty() && moves.dilations.size() != input.rank)) {
    refuse("strides and dilations must have an entry for each dimension of the input");
  }
  std::copy(size, size + 3, w.size);
  spatial(moves.strides, first, "strides", w.stride);
  if (!moves.dilations.empty()) spatial(moves.dilations, first, "dilations", w.dilation);
  for (int axis = 0; axis < 3; ++axis) {
    if (w.size[axis] < 1 || w.stride[axis] < 1 || w.dilation[axis] < 1) {
      refuse("sizes, strides and dilations of windows must be positive");
    }
  }
  Sizes pads(8);
  if (moves.padding == "EXPLICIT") {
    pads = moves.explicit_paddings;
    if (pads.size() != 8 || *std::min_element(pads.begin(), pads.end()) < 0) {
      refuse("explicit_paddings must be 8 values that are not negative");
    }
  }
  // Explicit padding is for images: rows and columns, behind the batch and perhaps the channels.
  for (int axis = 0; axis < 3; ++axis) {
    const auto at = static_cast<std::size_t>(2 * (axis + (first ? 1 : 0)));
    const bool has_pads = moves.padding == "EXPLICIT" && axis > 0;
    fit(axis == 0 && moves.padding == "EXPLICIT" ? "VALID" : moves.padding, input.size[axis],
        has_pads ? pads[at] : 0, has_pads ? pads[at + 1] : 0, w, axis);
  }
  return w;
}

}  // namespace tandem::cuda
