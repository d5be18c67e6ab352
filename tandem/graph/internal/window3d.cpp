#include "tandem/graph/internal/window3d.h"

#include <algorithm>

namespace tandem {

Window3D::Window3D(const std::string& data_format, const std::string& padding)
    : channels_first(data_format == "NCDHW"), same(padding == "SAME") {
  if (data_format != "NDHWC" && data_format != "NCDHW") {
    throw InvalidArgumentError(cat("Invalid data format ", data_format));
  }
  if (padding != "SAME" && padding != "VALID") {
    throw InvalidArgumentError(cat("Padding must be SAME or VALID, not ", padding));
  }
}

void Window3D::set(std::int64_t (&sizes)[3], const Sizes& five, const char* name) const {
  if (five.size() != 5) {
    throw InvalidArgumentError(cat(name, " must have 5 elements, but has ", five.size()));
  }
  if (five[0] != 1 || five[static_cast<std::size_t>(channel_axis())] != 1) {
    throw InvalidArgumentError(cat(name, " must be 1 in the batch and depth dimensions."));
  }
  for (int i = 0; i < 3; ++i) {
    sizes[i] = five[static_cast<std::size_t>(spatial_axis(i))];
    if (sizes[i] < 1 || sizes[i] > INT32_MAX) {
      throw InvalidArgumentError(cat(name, " must be positive and below 2^31, but has ", sizes[i]));
    }
  }
}

WindowAxis Window3D::axis(int i, std::int64_t input, std::int64_t size) const {
  WindowAxis a{input, size, stride[i], dilation[i]};
  if (input < 0 || (size < 0 && !same)) return a;
  if (same) {
    a.output = (input + a.stride - 1) / a.stride;
    if (size < 0) return a;
  }
  const std::int64_t reach = checked_multiply(std::max<std::int64_t>(size - 1, 0), a.dilation) + 1;
  if (same) {
    const std::int64_t padding =
        std::max<std::int64_t>((a.output - 1) * a.stride + reach - input, 0);
    a.pad_before = padding / 2;
    a.pad_after = padding - a.pad_before;
    return a;
  }
  if (input - reach + a.stride < 0) {
    throw InvalidArgumentError(cat("Computed output size would be negative: windows of ", reach,
                                   " with stride ", a.stride, " on a side of ", input));
  }
  a.output = (input - reach + a.stride) / a.stride;
  return a;
}

}  // namespace tandem
