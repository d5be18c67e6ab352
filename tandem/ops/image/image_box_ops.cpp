// Boxes in images: crops, the choice of the best, frames.

#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

// ---- Crops ----

void require_boxes(const InferenceContext& c, int boxes, int indices) {
  c.require_rank(boxes, 2);
  c.require_rank(indices, 1);
  c.merge_dim(c.input(boxes).dim(0), c.input(indices).dim(0), "boxes");
  c.merge_dim(c.input(boxes).dim(1), 4, "a box");
}

void crop_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  require_boxes(c, 1, 2);
  c.require_rank(3, 1);
  c.merge_dim(c.input(3).dim(0), 2, "crop_size");
  const std::int64_t boxes = c.merge_dim(c.input(1).dim(0), c.input(2).dim(0), "boxes");
  std::int64_t height = kUnknown, width = kUnknown;
  if (const auto size = c.input_ints(3)) {
    height = (*size)[0];
    width = (*size)[1];
    if (height < 0 || width < 0) c.fail("crop dimensions must be positive");
  }
  c.set_output(0, PartialShape({boxes, height, width, c.input(0).dim(3)}));
}

void crop_grad_image_shape(InferenceContext& c) {
  const PartialShape out = c.input_as_shape(3);
  c.set_output(0, out.has_rank() && out.rank() == 4 ? out : PartialShape::unknown_of_rank(4));
}

void crop_grad_boxes_shape(InferenceContext& c) {
  c.require_rank(2, 2);
  c.set_output(0, c.input(2));
}

void crop_gradient(GradientContext& g) {
  const DType dtype = g.input(0).dtype();
  const bool has_image_gradient =
      dtype == DType::kHalf || dtype == DType::kFloat || dtype == DType::kDouble;
  if (g.needs(0) && has_image_gradient) {
    g.set(0, op1("CropAndResizeGradImage", {g.grad(), g.input(1), g.input(2), shape(g.input(0))},
                 {{"T", dtype}, {"method", *g.find_attr("method")}}));
  }
  if (g.needs(1)) {
    g.set(1, op1("CropAndResizeGradBoxes", {g.grad(), g.input(0), g.input(1), g.input(2)}));
  }
}

#define TANDEM_CROPS "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; "

const OpRegistration kCrop{{.name = "CropAndResize",
                            .inputs = "image: T, boxes: float, box_ind: int32, crop_size: int32",
                            .outputs = "crops: float",
                            .attrs = TANDEM_CROPS "method: {'bilinear', 'nearest'} = 'bilinear'; "
                                                  "extrapolation_value: float = 0.0",
                            .shape = crop_shape,
                            .gradient = crop_gradient,
                            .traits = {.host_inputs = 0b1000},
                            .doc = "Boxes cropped from images and resized to one size."}};
const OpRegistration kCropGradImage{
    {.name = "CropAndResizeGradImage",
     .inputs = "grads: float, boxes: float, box_ind: int32, image_size: int32",
     .outputs = "output: T",
     .attrs = "T: {float, half, double}; method: {'bilinear', 'nearest'} = 'bilinear'",
     .shape = crop_grad_image_shape,
     .traits = {.host_inputs = 0b1000},
     .doc = "The gradient of CropAndResize towards the images."}};
const OpRegistration kCropGradBoxes{
    {.name = "CropAndResizeGradBoxes",
     .inputs = "grads: float, image: T, boxes: float, box_ind: int32",
     .outputs = "output: float",
     .attrs = TANDEM_CROPS "method: {'bilinear'} = 'bilinear'",
     .shape = crop_grad_boxes_shape,
     .doc = "The gradient of CropAndResize towards the boxes."}};

// ---- The choice of boxes ----

void suppression_inputs(const InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 1);
  for (int i = 2; i < c.num_inputs(); ++i) c.require_rank(i, 0);
  c.merge_dim(c.input(0).dim(0), c.input(1).dim(0), "boxes");
  c.merge_dim(c.input(0).dim(1), 4, "a box");
}

std::int64_t padded_size(const InferenceContext& c) {
  if (!c.attr<bool>("pad_to_max_output_size")) return kUnknown;
  const auto size = internal::input_int(c, 2);
  return size && *size >= 0 ? *size : kUnknown;
}

void suppression_shape(InferenceContext& c) {
  suppression_inputs(c);
  c.set_output(0, PartialShape({kUnknown}));
}

void suppression_v4_shape(InferenceContext& c) {
  suppression_inputs(c);
  c.set_output(0, PartialShape({padded_size(c)}));
  c.set_output(1, PartialShape::scalar());
}

void suppression_v5_shape(InferenceContext& c) {
  suppression_inputs(c);
  c.set_output(0, PartialShape({padded_size(c)}));
  c.set_output(1, PartialShape({padded_size(c)}));
  c.set_output(2, PartialShape::scalar());
}

void overlaps_shape(InferenceContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 1);
  for (int i = 2; i < 5; ++i) c.require_rank(i, 0);
  c.merge_dim(c.input(0).dim(0), c.input(1).dim(0), "overlaps");
  c.merge_dim(c.input(0).dim(0), c.input(0).dim(1), "overlaps");
  c.set_output(0, PartialShape({kUnknown}));
}

void combined_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 3);
  for (int i = 2; i < 6; ++i) c.require_rank(i, 0);
  const PartialShape &boxes = c.input(0), &scores = c.input(1);
  c.merge_dim(boxes.dim(1), scores.dim(1), "boxes");
  c.merge_dim(boxes.dim(3), 4, "a box");
  const std::int64_t batch = boxes.dim(0), classes = scores.dim(2);
  if (boxes.dim(2) != kUnknown && classes != kUnknown && boxes.dim(2) != 1 &&
      boxes.dim(2) != classes) {
    c.fail(
        cat("third dimension of boxes must be either 1 or equal to the third dimension of "
            "scores, but is ",
            boxes.dim(2), " for ", classes, " classes"));
  }
  std::int64_t most = kUnknown;
  const auto per_class = internal::input_int(c, 2), total = internal::input_int(c, 3);
  if (total && *total <= 0) c.fail("max_total_size should be > 0");
  if (total && per_class && *per_class >= 0) {
    most = *total;
    if (c.attr<bool>("pad_per_class")) {
      most = classes == kUnknown ? kUnknown
                                 : std::min(most, internal::multiply_sizes(*per_class, classes));
    }
  }
  c.set_output(0, PartialShape({batch, most, 4}));
  c.set_output(1, PartialShape({batch, most}));
  c.set_output(2, PartialShape({batch, most}));
  c.set_output(3, PartialShape({batch}));
}

const OpRegistration kSuppression{{.name = "NonMaxSuppression",
                                   .inputs = "boxes: float, scores: float, max_output_size: int32",
                                   .outputs = "selected_indices: int32",
                                   .attrs = "iou_threshold: float = 0.5",
                                   .shape = suppression_shape,
                                   .gradient = not_differentiable,
                                   .traits = {.host_inputs = 0b100},
                                   .doc = "The best boxes that do not overlap too much."}};
const OpRegistration kSuppressionV2{
    {.name = "NonMaxSuppressionV2",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold",
     .outputs = "selected_indices: int32",
     .attrs = "T: {half, float} = float; T_threshold: {half, float} = float",
     .shape = suppression_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b1100},
     .doc = "NonMaxSuppression with a threshold that is an input."}};
const OpRegistration kSuppressionV3{
    {.name = "NonMaxSuppressionV3",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, "
               "score_threshold: T_threshold",
     .outputs = "selected_indices: int32",
     .attrs = "T: {half, float} = float; T_threshold: {half, float} = float",
     .shape = suppression_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b11100},
     .doc = "NonMaxSuppressionV2 of the boxes whose score is high enough."}};
const OpRegistration kSuppressionV4{
    {.name = "NonMaxSuppressionV4",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, "
               "score_threshold: T_threshold",
     .outputs = "selected_indices: int32, valid_outputs: int32",
     .attrs = "T: {half, float} = float; T_threshold: {half, float} = float; "
              "pad_to_max_output_size: bool = false",
     .shape = suppression_v4_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b11100},
     .doc = "NonMaxSuppressionV3 with a result of fixed size, if asked for."}};
const OpRegistration kSuppressionV5{
    {.name = "NonMaxSuppressionV5",
     .inputs = "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, "
               "score_threshold: T, soft_nms_sigma: T",
     .outputs = "selected_indices: int32, selected_scores: T, valid_outputs: int32",
     .attrs = "T: {half, float} = float; pad_to_max_output_size: bool = false",
     .shape = suppression_v5_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b111100},
     .doc = "NonMaxSuppressionV4 with scores that fall with overlap if sigma is not 0."}};
const OpRegistration kSuppressionOverlaps{
    {.name = "NonMaxSuppressionWithOverlaps",
     .inputs = "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, "
               "score_threshold: float",
     .outputs = "selected_indices: int32",
     .shape = overlaps_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b11100},
     .doc = "NonMaxSuppressionV3 with a matrix of the candidates' overlaps."}};
const OpRegistration kCombined{
    {.name = "CombinedNonMaxSuppression",
     .inputs = "boxes: float, scores: float, max_output_size_per_class: int32, "
               "max_total_size: int32, iou_threshold: float, score_threshold: float",
     .outputs = "nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, "
                "valid_detections: int32",
     .attrs = "pad_per_class: bool = false; clip_boxes: bool = true",
     .shape = combined_shape,
     .gradient = not_differentiable,
     .traits = {.host_inputs = 0b111100},
     .doc = "The best boxes of each image over all classes, none suppressed by other classes."}};

// ---- Frames ----

void draw_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 3);
  c.merge_dim(c.input(1).dim(2), 4, "a box");
  if (c.num_inputs() == 3) c.require_rank(2, 2);
  c.set_output(0, c.input(0));
}

const OpRegistration kDraw{{.name = "DrawBoundingBoxes",
                            .inputs = "images: T, boxes: float",
                            .outputs = "output: T",
                            .attrs = "T: {float, half} = float",
                            .shape = draw_shape,
                            .doc = "Frames of boxes drawn into images, in ten colours."}};
const OpRegistration kDrawV2{{.name = "DrawBoundingBoxesV2",
                              .inputs = "images: T, boxes: float, colors: float",
                              .outputs = "output: T",
                              .attrs = "T: {float, half} = float",
                              .shape = draw_shape,
                              .doc = "Frames of boxes drawn into images, in the colours given."}};

}  // namespace

namespace image {

Tensor crop_and_resize(Tensor image, Tensor boxes, Tensor box_indices, Tensor crop_size,
                       StringView method, float extrapolation_value) {
  return call1(kCrop,
               {std::move(image), std::move(boxes), std::move(box_indices), std::move(crop_size)},
               {{"method", method}, {"extrapolation_value", extrapolation_value}});
}

Tensor non_max_suppression(Tensor boxes, Tensor scores, Tensor max_output_size, float iou_threshold,
                           float score_threshold) {
  return call1(kSuppressionV3, {std::move(boxes), std::move(scores), std::move(max_output_size),
                                Tensor(iou_threshold), Tensor(score_threshold)});
}

std::pair<Tensor, Tensor> non_max_suppression_with_scores(Tensor boxes, Tensor scores,
                                                          Tensor max_output_size,
                                                          float iou_threshold,
                                                          float score_threshold,
                                                          float soft_nms_sigma) {
  auto chosen = call(kSuppressionV5,
                     {std::move(boxes), std::move(scores), std::move(max_output_size),
                      Tensor(iou_threshold), Tensor(score_threshold), Tensor(soft_nms_sigma)});
  return {std::move(chosen[0]), std::move(chosen[1])};
}

std::pair<Tensor, Tensor> non_max_suppression_padded(Tensor boxes, Tensor scores,
                                                     Tensor max_output_size, float iou_threshold,
                                                     float score_threshold,
                                                     bool pad_to_max_output_size) {
  auto chosen = call(kSuppressionV4,
                     {std::move(boxes), std::move(scores), std::move(max_output_size),
                      Tensor(iou_threshold), Tensor(score_threshold)},
                     {{"pad_to_max_output_size", pad_to_max_output_size}});
  return {std::move(chosen[0]), std::move(chosen[1])};
}

std::vector<Tensor> combined_non_max_suppression(Tensor boxes, Tensor scores,
                                                 Tensor max_output_size_per_class,
                                                 Tensor max_total_size, float iou_threshold,
                                                 float score_threshold, bool pad_per_class,
                                                 bool clip_boxes) {
  return call(kCombined,
              {std::move(boxes), std::move(scores), std::move(max_output_size_per_class),
               std::move(max_total_size), Tensor(iou_threshold), Tensor(score_threshold)},
              {{"pad_per_class", pad_per_class}, {"clip_boxes", clip_boxes}});
}

Tensor draw_bounding_boxes(Tensor images, Tensor boxes, Tensor colors) {
  if (!colors.defined()) return call1(kDraw, {std::move(images), std::move(boxes)});
  return call1(kDrawV2, {std::move(images), std::move(boxes), std::move(colors)});
}

}  // namespace image
}  // namespace tandem
