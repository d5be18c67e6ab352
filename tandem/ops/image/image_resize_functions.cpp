// td::image::resize: TensorFlow's choice of op for each method.

#include <cmath>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/image_transform_ops.h"
#include "tandem/ops/internal/image_shape.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pad_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/ops/unary_ops.h"

namespace tandem::image {
namespace {

Tensor sides(const Tensor& batch) { return slice(shape(batch), {1}, {2}); }

// The largest size within `size` of the images' proportions.
Tensor in_proportion(const Tensor& size, const Tensor& batch) {
  const Tensor now = cast(sides(batch), DType::kFloat);
  const Tensor scale = reduce_min(cast(size, DType::kFloat) / now);
  return cast(round(scale * now), DType::kInt32);
}

Tensor by_kernel(Tensor batch, const Tensor& size, std::string_view kernel, bool antialias) {
  const Tensor scale = cast(size, DType::kFloat) / cast(sides(batch), DType::kFloat);
  return scale_and_translate(std::move(batch), size, scale, zeros({2}), kernel, antialias);
}

Tensor resize_batch(Tensor batch, const Tensor& size, const ResizeTo& options) {
  const std::string_view method = options.method;
  const ResizeOptions centres{.half_pixel_centers = true};
  if (method == "nearest") return resize_nearest_neighbor(std::move(batch), size, centres);
  if (method == "area") return resize_area(std::move(batch), size);
  if (method == "bilinear") {
    return options.antialias ? by_kernel(std::move(batch), size, "triangle", true)
                             : resize_bilinear(std::move(batch), size, centres);
  }
  if (method == "bicubic") {
    return options.antialias ? by_kernel(std::move(batch), size, "keyscubic", true)
                             : resize_bicubic(std::move(batch), size, centres);
  }
  if (method == "lanczos3" || method == "lanczos5" || method == "gaussian" ||
      method == "mitchellcubic") {
    return by_kernel(std::move(batch), size, method, options.antialias);
  }
  throw InvalidArgumentError(cat("td::image::resize: the method '", method,
                                 "' is none of bilinear, nearest, bicubic, area, lanczos3, "
                                 "lanczos5, gaussian, mitchellcubic."));
}

}  // namespace

Tensor resize(Tensor images, const IntList& size, const ResizeTo& options) {
  const bool is_batch = internal::is_batch(images, "resize");
  if (!is_batch) images = expand_dims(std::move(images), 0);
  if (const auto known = size.known(); known && known->size() != 2) {
    throw InvalidArgumentError(cat("td::image::resize: size must be new_height, new_width, got ",
                                   known->size(), " numbers."));
  }
  Tensor wanted = size.tensor(DType::kInt32);
  if (wanted.dtype() != DType::kInt32) wanted = cast(wanted, DType::kInt32);
  if (options.preserve_aspect_ratio) wanted = in_proportion(wanted, images);
  Tensor resized = resize_batch(std::move(images), wanted, options);
  return is_batch ? resized : squeeze(std::move(resized), {0});
}

Tensor resize_with_pad(Tensor image, std::int64_t target_height, std::int64_t target_width,
                       const ResizeTo& options) {
  const bool is_batch = internal::is_batch(image, "resize_with_pad");
  if (target_height <= 0 || target_width <= 0) {
    throw InvalidArgumentError(
        cat("td::image::resize_with_pad: target_height and target_width "
            "must be > 0, got ",
            target_height, " and ", target_width, "."));
  }
  if (!is_batch) image = expand_dims(std::move(image), 0);
  const Tensor target = internal::int_vector({target_height, target_width}, DType::kInt32);
  const Tensor float_target = cast(target, DType::kFloat);
  const Tensor now = cast(sides(image), DType::kFloat);
  const Tensor fitting = now / reduce_max(now / float_target);
  const Tensor size = cast(floor(fitting), DType::kInt32);
  const Tensor before = maximum(cast(floor((float_target - fitting) / 2.0), DType::kInt32), 0);
  const Tensor resized = resize_batch(std::move(image), size, options);
  const Tensor none_added = Tensor{{0, 0}};
  const Tensor margins =
      concat({none_added, stack({before, target - size - before}, 1), none_added}, 0);
  Tensor padded = pad(resized, margins);
  return is_batch ? padded : squeeze(std::move(padded), {0});
}

}  // namespace tandem::image
