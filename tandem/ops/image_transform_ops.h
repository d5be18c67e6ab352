#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

/// Images moved, cropped and resized: [height, width, channels], or a batch of such.
/// Other ranks throw InvalidArgumentError. Sizes need not be known while tracing.
namespace tandem::image {

struct ResizeTo {
  /// bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian or mitchellcubic.
  std::string_view method = "bilinear";
  bool preserve_aspect_ratio = false;  ///< as large as fits into the size asked for
  bool antialias = false;              ///< smooth what becomes smaller; not for nearest and area
};
/// Images of `size` (height, width). float but for method nearest, which keeps the dtype.
TANDEM_EXPORT Tensor resize(Tensor images, const IntList& size, const ResizeTo& options = {});
/// Resizes to the largest size that fits, with zeros around.
TANDEM_EXPORT Tensor resize_with_pad(Tensor image, std::int64_t target_height,
                                     std::int64_t target_width, const ResizeTo& options = {});
/// Cut at both sides where too large, zeros added at both sides where too small.
TANDEM_EXPORT Tensor resize_with_crop_or_pad(Tensor image, std::int64_t target_height,
                                             std::int64_t target_width);

/// A window, which must lie inside.
TANDEM_EXPORT Tensor crop_to_bounding_box(Tensor image, std::int64_t offset_height,
                                          std::int64_t offset_width, std::int64_t target_height,
                                          std::int64_t target_width);
/// The image at that place in zeros; it must fit.
TANDEM_EXPORT Tensor pad_to_bounding_box(Tensor image, std::int64_t offset_height,
                                         std::int64_t offset_width, std::int64_t target_height,
                                         std::int64_t target_width);
/// The middle: this fraction, in (0, 1], of each side.
TANDEM_EXPORT Tensor central_crop(Tensor image, double central_fraction);

TANDEM_EXPORT Tensor flip_left_right(Tensor image);
TANDEM_EXPORT Tensor flip_up_down(Tensor image);
/// Turned counter-clockwise by k · 90°.
TANDEM_EXPORT Tensor rot90(Tensor image, std::int64_t k = 1);
/// Height and width change places.
TANDEM_EXPORT Tensor transpose(Tensor image);

/// A part of `size` (as long as the rank of `value`) from a random place.
TANDEM_EXPORT Tensor random_crop(Tensor value, const IntList& size,
                                 std::optional<std::int64_t> seed = {});
/// Flipped or not, with equal chance, each image of a batch by itself.
TANDEM_EXPORT Tensor random_flip_left_right(Tensor image, std::optional<std::int64_t> seed = {});
TANDEM_EXPORT Tensor random_flip_up_down(Tensor image, std::optional<std::int64_t> seed = {});

}  // namespace tandem::image
