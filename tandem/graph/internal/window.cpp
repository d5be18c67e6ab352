#include "tandem/graph/internal/window.h"

#include <algorithm>

#include "tandem/core/error.h"

namespace tandem {
namespace {

// The largest size a window may have: far beyond any image, and small enough that sums of a few
// products of two such numbers stay within 64 bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 30;

void read_sizes(const std::vector<std::int64_t>& values, std::string_view name, bool nchw,
                std::int64_t out[2]) {
  if (values.size() != 4) {
    throw InvalidArgumentError(cat("Sliding window ", name,
                                   " field must specify 4 dimensions, but it has ", values.size(),
                                   "."));
  }
  const std::size_t height = nchw ? 2 : 1;
  if (values[0] != 1 || values[nchw ? 1 : 3] != 1) {
    // TensorFlow's error and text: its kernels have no windows over images or channels either.
    throw UnimplementedError(cat("Current implementation does not yet support ", name,
                                 " in the batch and depth dimensions: they must be 1."));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    out[i] = values[height + i];
    if (out[i] <= 0 || out[i] > kLargest) {
      throw InvalidArgumentError(
          cat("Sliding window ", name, " must be > 0, but got ", out[i], "."));
    }
  }
}

}  // namespace

void WindowAttrs::set_format(std::string_view data_format) {
  if (data_format != "NHWC" && data_format != "NCHW") {
    throw InvalidArgumentError(
        cat("Invalid data format '", data_format, "': use \"NHWC\" or \"NCHW\"."));
  }
  nchw = data_format == "NCHW";
}

void WindowAttrs::set_padding(std::string_view name,
                              const std::vector<std::int64_t>& explicit_paddings) {
  if (name != "EXPLICIT") {
    if (name != "SAME" && name != "VALID") {
      throw InvalidArgumentError(
          cat("Invalid padding '", name, "': use \"SAME\", \"VALID\" or \"EXPLICIT\"."));
    }
    if (!explicit_paddings.empty()) {
      throw InvalidArgumentError(
          "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT.");
    }
    padding = name == "SAME" ? Padding::kSame : Padding::kValid;
    return;
  }
  padding = Padding::kExplicit;
  if (explicit_paddings.size() != 8) {
    throw InvalidArgumentError(cat("explicit_paddings attribute must contain 8 values, but got: ",
                                   explicit_paddings.size(), "."));
  }
  const int channel = channel_axis();
  for (int axis = 0; axis < 4; ++axis) {
    const std::int64_t before = explicit_paddings[static_cast<std::size_t>(2 * axis)];
    const std::int64_t after = explicit_paddings[static_cast<std::size_t>(2 * axis + 1)];
    if (before < 0 || after < 0 || before > kLargest || after > kLargest) {
      throw InvalidArgumentError(
          cat("All elements of explicit_paddings must be nonnegative, but got ",
              std::min(before, after), "."));
    }
    if (axis == 0 || axis == channel) {
      if (before != 0 || after != 0) {
        throw InvalidArgumentError(
            "Nonzero explicit padding in the batch or depth dimensions is not supported.");
      }
      continue;
    }
    explicit_before[axis - spatial_axis(0)] = before;
    explicit_after[axis - spatial_axis(0)] = after;
  }
}

void WindowAttrs::set_strides(const std::vector<std::int64_t>& strides) {
  read_sizes(strides, "strides", nchw, stride);
}

void WindowAttrs::set_dilations(const std::vector<std::int64_t>& dilations) {
  read_sizes(dilations, "dilations", nchw, dilation);
}

void WindowAttrs::set_ksize(const std::vector<std::int64_t>& sizes) {
  if (sizes.size() == 4 && (sizes[0] != 1 || sizes[nchw ? 1 : 3] != 1)) {
    // TensorFlow's own error; no issue asks for such windows.
    throw UnimplementedError(
        "Pooling over the batch or the channels is not supported: their ksize must be 1.");
  }
  read_sizes(sizes, "ksize", nchw, ksize);
}

WindowAxis WindowAttrs::axis(int i, std::int64_t input, std::int64_t filter) const {
  WindowAxis a;
  a.input = input;
  a.filter = filter;
  a.stride = stride[i];
  a.dilation = dilation[i];
  if (padding == Padding::kExplicit) {
    a.pad_before = explicit_before[i];
    a.pad_after = explicit_after[i];
  }
  if (input < 0) return a;
  if (padding == Padding::kSame) a.output = (input + a.stride - 1) / a.stride;
  if (filter < 0) return a;
  if (filter > kLargest || input > (INT64_MAX >> 2)) {
    throw InvalidArgumentError(
        cat("The window is too large: input size ", input, ", filter size ", filter, "."));
  }
  const std::int64_t effective = (filter - 1) * a.dilation + 1;
  if (padding == Padding::kSame) {
    const std::int64_t needed =
        std::max<std::int64_t>(0, (a.output - 1) * a.stride + effective - input);
    a.pad_before = needed / 2;
    a.pad_after = needed - a.pad_before;
    return a;
  }
  const std::int64_t room = input + a.pad_before + a.pad_after - effective + a.stride;
  a.output = room < 0 ? -1 : room / a.stride;
  if (a.output < 0) {
    throw InvalidArgumentError(
        cat("Computed output size would be negative: ", -((-room + a.stride - 1) / a.stride),
            " [input_size: ", input, ", effective_filter_size: ", effective, ", stride: ", a.stride,
            "]. Use padding \"SAME\" or a smaller window."));
  }
  return a;
}

}  // namespace tandem
