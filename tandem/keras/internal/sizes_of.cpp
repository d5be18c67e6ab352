#include "tandem/keras/internal/sizes_of.h"

#include <cstdint>

#include "tandem/core/shape.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/operators.h"

namespace tandem::keras::internal {

std::vector<Tensor> scalar_sizes(const Tensor& x) {
  const PartialShape known = x.partial_shape();
  Tensor sizes;
  std::vector<Tensor> scalars;
  for (int i = 0; i < known.rank(); ++i) {
    if (known.dim(i) >= 0 && known.dim(i) <= INT32_MAX) {
      scalars.emplace_back(static_cast<int>(known.dim(i)));
      continue;
    }
    if (!sizes.defined()) sizes = shape(x);
    scalars.push_back(index(sizes, {i}));
  }
  return scalars;
}

Tensor reshape_to(const Tensor& x, const std::vector<Tensor>& sizes) {
  return reshape(x, IntList(stack(sizes)));
}

}  // namespace tandem::keras::internal
