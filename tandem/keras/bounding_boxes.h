#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Rectangles in images, [boxes, 4] or [batch, boxes, 4], float32. The four numbers of a format:
///
///     xyxy             left, top, right, bottom; in pixels, as all but "rel_…"
///     yxyx             top, left, bottom, right
///     xywh             left, top, width, height
///     center_xywh      middle x, middle y, width, height
///     center_yxhw      middle y, middle x, height, width
///     rel_xyxy, rel_yxyx, rel_xywh, rel_center_xywh    as shares of the image's size
///
/// Unknown formats, and relative ones without a size of the image, are an InvalidArgumentError.
namespace tandem::keras::utils::bounding_boxes {

struct ImageSize {
  double height;
  double width;
};

TANDEM_EXPORT Tensor convert_format(const Tensor& boxes, const String& source, const String& target,
                                    std::optional<ImageSize> image_size = {});

/// Boxes and the class of each, [boxes] or [batch, boxes].
struct LabeledBoxes {
  Tensor boxes;
  Tensor labels;
};
/// Cut to the image; a box of which nothing is left has the label -1.
TANDEM_EXPORT LabeledBoxes clip_to_image_size(const LabeledBoxes& bounding_boxes,
                                              ImageSize image_size,
                                              const String& bounding_box_format = "xyxy");

/// Boxes of a part of the image, in "xyxy", cut to it.
TANDEM_EXPORT Tensor crop(const Tensor& boxes, double top, double left, double height,
                          double width);
/// Boxes of an image with a border above and on the left, in "xyxy".
TANDEM_EXPORT Tensor pad(const Tensor& boxes, double top, double left);

struct AffineOptions {
  // A number for each image of the batch.
  Tensor angle = {};        ///< of a rotation, in degrees
  Tensor translate_x = {};  ///< a share of the width
  Tensor translate_y = {};
  Tensor scale = {};
  Tensor shear_x = {};  ///< in degrees
  Tensor shear_y = {};
  double center_x = 0.5;  ///< of rotation and scaling, as a share of the width
  double center_y = 0.5;
};
/// The rectangles around the moved corners of boxes [batch, boxes, 4] in "xyxy". What is not given
/// changes nothing.
TANDEM_EXPORT Tensor affine_transform(const Tensor& boxes, ImageSize image_size,
                                      const AffineOptions& options);

struct DeltaOptions {
  String anchor_format = "xyxy";
  String box_format = "xyxy";
  String encoding_format = "center_yxhw";                        ///< or "center_xywh"
  std::optional<std::array<double, 4>> variance = std::nullopt;  ///< deltas are divided by these
  std::optional<ImageSize> image_size = std::nullopt;
};
/// What a detector learns: the distance of the middles as shares of the anchor's size, and the
/// logarithms of the ratios of the sizes. anchors: [boxes, 4].
TANDEM_EXPORT Tensor encode_box_to_deltas(const Tensor& anchors, const Tensor& boxes,
                                          const DeltaOptions& options = {});
/// The boxes of deltas.
TANDEM_EXPORT Tensor decode_deltas_to_boxes(const Tensor& anchors, const Tensor& boxes_delta,
                                            const DeltaOptions& options = {});

struct IouOptions {
  bool use_masking = false;  ///< boxes of which all numbers are negative are none
  double mask_val = -1;      ///< their result
  std::optional<ImageSize> image_size = std::nullopt;
};
/// Intersection over union of each box with each: [boxes1, boxes2], or [batch, boxes1, boxes2]
/// where either has a batch.
TANDEM_EXPORT Tensor compute_iou(const Tensor& boxes1, const Tensor& boxes2,
                                 const String& bounding_box_format, const IouOptions& options = {});
/// Complete IoU of each box with the one in its place: IoU less penalties for the distance of the
/// middles and the difference of the proportions (Zheng et al. 2020). Not for relative formats.
TANDEM_EXPORT Tensor compute_ciou(const Tensor& boxes1, const Tensor& boxes2,
                                  const String& bounding_box_format);

}  // namespace tandem::keras::utils::bounding_boxes
