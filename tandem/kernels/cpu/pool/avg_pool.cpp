// The mean of each window, and its gradient.

#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/pool/pool3d_windows.h"
#include "tandem/kernels/cpu/pool/pool_geometry.h"

namespace tandem::cpu {
namespace {

void avg_pool(KernelContext& c) {
  const PoolGeometry g = pool_geometry(pool_attrs(c, 0), c.input(0).shape());
  pool_means(c, volume_of(g), c.input(0), c.allocate_output(0, g.output));
}

Shape image_shape(const Array& sizes) {
  if (sizes.rank() != 1 || sizes.num_elements() != 4) {
    throw InvalidArgumentError(cat(
        "orig_input_shape must be 1-dimensional and 4 elements, but has shape ", sizes.shape()));
  }
  const auto values = sizes.values<std::int32_t>();
  return Shape(std::vector<std::int64_t>(values.begin(), values.end()));
}

PoolGeometry check_gradient(const KernelContext& c, const Shape& image) {
  if (c.input(1).rank() != 4) {
    throw InvalidArgumentError(
        cat("out_backprop must be 4-dimensional, but has shape ", c.input(1).shape()));
  }
  const PoolGeometry g = pool_geometry(pool_attrs(c, 0), image);
  require_shape(c, 1, g.output, "grad");
  return g;
}

void avg_pool_grad(KernelContext& c) {
  const Shape shape = image_shape(c.input(0));
  const PoolGeometry g = check_gradient(c, shape);
  pool_means_grad(c, volume_of(g), c.input(1), c.allocate_output(0, shape));
}

const KernelRegistration kAvgPool{
    {.op = "AvgPool", .types = {{"T", kFloatTypes}}, .run = avg_pool}};
const KernelRegistration kAvgPoolGrad{
    {.op = "AvgPoolGrad", .types = {{"T", kFloatTypes}}, .run = avg_pool_grad}};

}  // namespace
}  // namespace tandem::cpu
