#include "tandem/ops/broadcast_gradient.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/core/shape.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem {
namespace {

// Which axes of the gradient to sum: the first `leading` ones, which `like` does not have, and
// those in `inner`.
struct Repeated {
  int leading = 0;
  std::vector<std::int64_t> inner;
};

// Nothing if it cannot be determined from what is known of the shapes.
std::optional<Repeated> find_repeated(const PartialShape& gradient, const PartialShape& like,
                                      const PartialShape* other) {
  if (!gradient.has_rank() || !like.has_rank() || gradient.rank() < like.rank())
    return std::nullopt;
  Repeated found;
  found.leading = gradient.rank() - like.rank();
  for (int axis = 0; axis < like.rank(); ++axis) {
    const int at = axis + found.leading;
    if (gradient.dim(at) == 1 || like.dim(axis) > 1 || like.dim(axis) == 0) continue;
    if (like.dim(axis) == 1) {
      found.inner.push_back(at);
      continue;
    }
    const int others = other && other->has_rank() ? at - (gradient.rank() - other->rank()) : 0;
    const bool alone = other && other->has_rank() && (others < 0 || other->dim(others) == 1);
    if (!alone) return std::nullopt;
  }
  return found;
}

Tensor sum_to(Tensor gradient, const Tensor& like, const Tensor* other) {
  if (!like.is_symbolic() && !gradient.is_symbolic() && gradient.shape() == like.shape())
    return gradient;
  const PartialShape from = gradient.partial_shape(), to = like.partial_shape();
  const PartialShape others = other ? other->partial_shape() : PartialShape();
  const auto repeated = find_repeated(from, to, other ? &others : nullptr);
  if (!repeated) {
    Tensor target = shape(like);
    Tensor axes = broadcast_gradient_args(target, shape(gradient)).first;
    return reshape(reduce_sum(std::move(gradient), Axes(std::move(axes))), target);
  }
  if (repeated->leading == 0 && repeated->inner.empty()) return gradient;
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < repeated->leading; ++axis) axes.push_back(axis);
  axes.insert(axes.end(), repeated->inner.begin(), repeated->inner.end());
  const bool keep = repeated->leading == 0;
  Tensor sum = reduce_sum(std::move(gradient), Axes(std::move(axes)), keep);
  if (keep || repeated->inner.empty()) return sum;
  return to.is_fully_known() ? reshape(std::move(sum), to.to_shape())
                             : reshape(std::move(sum), shape(like));
}

}  // namespace

Tensor sum_to_shape_of(Tensor gradient, const Tensor& like) {
  return sum_to(std::move(gradient), like, nullptr);
}

Tensor sum_to_shape_of(Tensor gradient, const Tensor& like, const Tensor& other) {
  return sum_to(std::move(gradient), like, &other);
}

std::pair<Tensor, Tensor> broadcast_gradient_args(Tensor s0, Tensor s1) {
  std::vector<Tensor> axes = raw_op("BroadcastGradientArgs", {std::move(s0), std::move(s1)});
  return {std::move(axes[0]), std::move(axes[1])};
}

}  // namespace tandem
