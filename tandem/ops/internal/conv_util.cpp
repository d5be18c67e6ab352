#include "tandem/ops/internal/conv_util.h"

#include <algorithm>

#include "tandem/core/error.h"
#include "tandem/ops/array_ops.h"

namespace tandem::nn {

std::vector<std::int64_t> four_sizes(Size2D size, const std::string& data_format) {
  if (data_format == "NCHW") return {1, 1, size.height, size.width};
  return {1, size.height, size.width, 1};
}

AttrMap conv_attrs(Size2D strides, const Padding& padding, const std::string& data_format,
                   Size2D dilations) {
  AttrMap attrs{{"strides", four_sizes(strides, data_format)}, {"padding", padding.kind}};
  if (!padding.counts.empty()) {
    if (padding.counts.size() != 4) {
      throw InvalidArgumentError(
          cat("Explicit padding has four counts (top, bottom, left, right), not ",
              padding.counts.size(), "."));
    }
    std::vector<std::int64_t> all(8, 0);
    std::copy(padding.counts.begin(), padding.counts.end(),
              all.begin() + (data_format == "NCHW" ? 4 : 2));
    attrs.set("explicit_paddings", std::move(all));
  }
  if (data_format != "NHWC") attrs.set("data_format", data_format);
  if (dilations.height != 1 || dilations.width != 1) {
    attrs.set("dilations", four_sizes(dilations, data_format));
  }
  return attrs;
}

Tensor shape_vector(const Tensor& x) {
  const PartialShape known = x.partial_shape();
  if (!known.is_fully_known()) return tandem::shape(x);
  std::vector<std::int32_t> sizes;
  for (const std::int64_t size : known.dims()) {
    if (size > INT32_MAX) {
      throw UnimplementedError(
          cat("A size of ", size, " does not fit into the int32 shape that this op takes."));
    }
    sizes.push_back(static_cast<std::int32_t>(size));
  }
  return Tensor::from(sizes);
}

}  // namespace tandem::nn
