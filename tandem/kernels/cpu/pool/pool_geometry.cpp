#include "tandem/kernels/cpu/pool/pool_geometry.h"

#include <vector>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

std::vector<std::int64_t> sizes_input(const KernelContext& c, int i, const char* what) {
  const Array& sizes = c.input(i);
  if (sizes.rank() != 1 || sizes.num_elements() != 4) {
    throw InvalidArgumentError(
        cat(what, " must be a vector of 4 elements, but has shape ", sizes.shape()));
  }
  const auto values = sizes.values<std::int32_t>();
  return {values.begin(), values.end()};
}

}  // namespace

WindowAttrs pool_attrs(const KernelContext& c, int first_size) {
  const bool has_explicit = c.op().find_attr("explicit_paddings") != nullptr;
  WindowAttrs attrs = read_pool_attrs(c, has_explicit, first_size == 0);
  if (first_size != 0) {
    attrs.set_ksize(sizes_input(c, first_size, "ksize"));
    attrs.set_strides(sizes_input(c, first_size + 1, "strides"));
  }
  return attrs;
}

PoolGeometry pool_geometry(const WindowAttrs& attrs, const Shape& image) {
  if (image.rank() != 4) {
    throw InvalidArgumentError(cat("tensor_in must be 4-dimensional, but has shape ", image));
  }
  for (int i = 0; i < 2; ++i) {
    if (attrs.explicit_before[i] >= attrs.ksize[i] || attrs.explicit_after[i] >= attrs.ksize[i]) {
      throw InvalidArgumentError(
          cat("The padding, ", attrs.explicit_before[i], " and ", attrs.explicit_after[i],
              ", needs to be smaller than the window size ", attrs.ksize[i], "."));
    }
  }
  PoolGeometry g;
  g.height = attrs.axis(0, image[attrs.spatial_axis(0)], attrs.ksize[0]);
  g.width = attrs.axis(1, image[attrs.spatial_axis(1)], attrs.ksize[1]);
  g.batch = image[0];
  g.channels = image[attrs.channel_axis()];
  g.output = attrs.make_shape<Shape>(g.batch, g.height.output, g.width.output, g.channels);
  if (attrs.nchw) {
    g.batch = checked_multiply(g.batch, g.channels);
    g.channels = 1;
  }
  return g;
}

void require_shape(const KernelContext& c, int i, const Shape& shape, const char* what) {
  if (c.input(i).shape() != shape) {
    throw InvalidArgumentError(
        cat("Expected ", what, " shape to be ", shape, ", but got ", c.input(i).shape()));
  }
}

}  // namespace tandem::cpu
