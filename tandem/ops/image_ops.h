#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Ops on images [batch, height, width, channels].
namespace tandem::image {

/// How pixels are placed when sizes change: at their centres, or so that the corners' centres meet.
struct ResizeOptions {
  bool align_corners = false;
  bool half_pixel_centers = false;
};
/// Images of `size` (int32 [height, width]). Of any real dtype; all but resize_nearest_neighbor
/// give float.
TANDEM_EXPORT Tensor resize_bilinear(Tensor images, Tensor size, const ResizeOptions& options = {});
TANDEM_EXPORT Tensor resize_bicubic(Tensor images, Tensor size, const ResizeOptions& options = {});
TANDEM_EXPORT Tensor resize_nearest_neighbor(Tensor images, Tensor size,
                                             const ResizeOptions& options = {});
TANDEM_EXPORT Tensor resize_area(Tensor images, Tensor size, bool align_corners = false);

/// Images scaled, moved and cut to `size`; kernels lanczos1, lanczos3, lanczos5, gaussian, box,
/// triangle, keyscubic, mitchellcubic.
TANDEM_EXPORT Tensor scale_and_translate(Tensor images, Tensor size, Tensor scale,
                                         Tensor translation, StringView kernel_type = "lanczos3",
                                         bool antialias = true);

/// Parts of images, [boxes, crop height, crop width, channels], float: boxes [n, 4] as (y1, x1, y2,
/// x2) in units of the image, `box_indices` [n] into the batch. Throws OutOfRangeError for others.
TANDEM_EXPORT Tensor crop_and_resize(Tensor image, Tensor boxes, Tensor box_indices,
                                     Tensor crop_size, StringView method = "bilinear",
                                     float extrapolation_value = 0);

/// Indices of boxes in falling order of score, without those that overlap better ones.
TANDEM_EXPORT Tensor non_max_suppression(Tensor boxes, Tensor scores, Tensor max_output_size,
                                         float iou_threshold = 0.5f,
                                         float score_threshold = -3.402823466e38f);
/// Like non_max_suppression, with scores that fall with overlap, which are returned too.
TANDEM_EXPORT std::pair<Tensor, Tensor> non_max_suppression_with_scores(
    Tensor boxes, Tensor scores, Tensor max_output_size, float iou_threshold = 0.5f,
    float score_threshold = -3.402823466e38f, float soft_nms_sigma = 0);
/// Indices filled up with zeros to max_output_size, and how many are valid.
TANDEM_EXPORT std::pair<Tensor, Tensor> non_max_suppression_padded(
    Tensor boxes, Tensor scores, Tensor max_output_size, float iou_threshold = 0.5f,
    float score_threshold = -3.402823466e38f, bool pad_to_max_output_size = false);

/// The best boxes of every image over all classes: boxes, scores, classes, and how many are valid.
TANDEM_EXPORT std::vector<Tensor> combined_non_max_suppression(
    Tensor boxes, Tensor scores, Tensor max_output_size_per_class, Tensor max_total_size,
    float iou_threshold = 0.5f, float score_threshold = -3.402823466e38f,
    bool pad_per_class = false, bool clip_boxes = true);

/// Windows of images as vectors: [batch, rows, columns, height · width · channels of a window].
TANDEM_EXPORT Tensor extract_patches(Tensor images, const std::vector<std::int64_t>& sizes,
                                     const std::vector<std::int64_t>& strides,
                                     const std::vector<std::int64_t>& rates, StringView padding);

// Colours. The last axis holds red, green and blue (or hue, saturation and value) in [0, 1].
TANDEM_EXPORT Tensor rgb_to_hsv(Tensor images);
TANDEM_EXPORT Tensor hsv_to_rgb(Tensor images);
// The following take images of any number dtype and return that dtype (image_adjust_ops.h).
/// Differences from each channel's mean, times the factor.
TANDEM_EXPORT Tensor adjust_contrast(Tensor images, Tensor contrast_factor);
/// Hue turned by `delta`, in turns, from -1 to 1.
TANDEM_EXPORT Tensor adjust_hue(Tensor image, Tensor delta);
TANDEM_EXPORT Tensor adjust_saturation(Tensor image, Tensor saturation_factor);
/// One-pixel frames: boxes [batch, n, 4]; colors [m, channels], used in turns.
TANDEM_EXPORT Tensor draw_bounding_boxes(Tensor images, Tensor boxes, Tensor colors = Tensor());

}  // namespace tandem::image
