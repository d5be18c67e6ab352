#include "tandem/ops/broadcast_gradient.h"

#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
std::pair<Tensor, Tensor> broadcast_gradient_args(Tensor s0, Tensor s1) {
  auto axes = raw_op("BroadcastGradientArgs", {std::move(s0), std::move(s1)});
  return {std::move(axes[0]), std::move(axes[1])};
}

Tensor sum_to_shape_of(Tensor gradient, const Tensor& like) {
  const PartialShape from = gradient.partial_shape(), to = like.partial_shape();
  if (from == to && from.is_fully_known()) return gradient;
  if (from.is_fully_known() && to.is_fully_known()) {
    std::vector<std::int64_t> axes;
    for (int i = 0; i < from.rank(); ++i) {
      const int j = i - (from.rank() - to.rank());
      if (j < 0 || (to.dim(j) == 1 && from.dim(i) != 1)) axes.push_back(i);
    }
    return reshape(reduce_sum(std::move(gradient), Axes(axes)), to.to_shape());
  }
  const auto [axes, unused] = broadcast_gradient_args(shape(like), shape(gradient));
  return reshape(reduce_sum(std::move(gradient), Axes(axes)), shape(like));
}

}  // namespace tandem
