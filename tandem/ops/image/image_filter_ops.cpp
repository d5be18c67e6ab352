#include "tandem/ops/image_filter_ops.h"

#include <vector>

#include "tandem/core/error.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/internal/image_shape.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::image {
namespace {

// Along an axis counted from the end: every element but the first less every element but the last.
Tensor differences(const Tensor& images, int axis) {
  std::vector<Index> later, earlier;
  for (int i = 0; i < images.rank(); ++i) {
    const bool here = i == images.rank() + axis;
    later.emplace_back(here ? Slice(1, none) : Slice(none, none));
    earlier.emplace_back(here ? Slice(none, -1) : Slice(none, none));
  }
  return index(images, later) - index(images, earlier);
}

Tensor zero_after(Tensor x, std::int64_t axis) {
  std::vector<int> paddings(8, 0);
  paddings[static_cast<std::size_t>(2 * axis + 1)] = 1;
  return pad(std::move(x), Tensor::from(paddings, {4, 2}));
}

}  // namespace

Tensor total_variation(Tensor images) {
  const Axes axes = internal::is_batch(images, "total_variation") ? Axes({1, 2, 3}) : Axes();
  return reduce_sum(abs(differences(images, -3)), axes) +
         reduce_sum(abs(differences(images, -2)), axes);
}

std::pair<Tensor, Tensor> image_gradients(Tensor image) {
  internal::require_batch(image, "image_gradients");
  return {zero_after(differences(image, -3), 1), zero_after(differences(image, -2), 2)};
}

Tensor sobel_edges(Tensor image) {
  internal::require_batch(image, "sobel_edges");
  // Row by row; of each place the filter down and the one across.
  const std::vector<float> filters = {-1, -1, -2, 0, -1, 1, 0, -2, 0, 0, 0, 2, 1, -1, 2, 0, 1, 1};
  const Tensor one = cast(Tensor::from(filters, {3, 3, 1, 2}), image.dtype());
  const Tensor sizes = shape(image);
  const Tensor channels = slice(sizes, {3}, {1});
  const Tensor repeats = concat({Tensor{1, 1}, channels, Tensor{1}}, 0);
  const Tensor margin = Tensor{{0, 0}, {1, 1}, {1, 1}, {0, 0}};
  const Tensor padded = pad(std::move(image), margin, PadMode::kReflect);
  return reshape(nn::depthwise_conv2d(padded, tile(one, repeats), {1, 1}, "VALID"),
                 concat({sizes, Tensor{2}}, 0));
}

}  // namespace tandem::image
