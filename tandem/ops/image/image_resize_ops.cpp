#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/internal/sizes.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/slice_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

using internal::kUnknown;
using internal::op1;

// [batch, size[0], size[1], channels]
void resized_shape(InferenceContext& c) {
  c.require_rank(0, 4);
  c.require_rank(1, 1);
  const PartialShape& in = c.input(0);
  std::int64_t height = kUnknown, width = kUnknown;
  if (c.input(1).has_rank()) c.merge_dim(c.input(1).dim(0), 2, "size");
  if (const auto size = c.input_ints(1)) {
    height = (*size)[0];
    width = (*size)[1];
    if (height < 0 || width < 0) c.fail("output dimensions must be positive");
  } else if (const PartialShape known = c.input_as_shape(1); known.rank() == 2) {
    height = known.dim(0);
    width = known.dim(1);
  }
  c.set_output(0, PartialShape({in.dim(0), height, width, in.dim(3)}));
}

void scaled_shape(InferenceContext& c) {
  resized_shape(c);
  c.require_rank(2, 1);
  c.require_rank(3, 1);
}

void as_second_input(InferenceContext& c) { c.set_output(0, c.input(1)); }

AttrMap placement(const GradientContext& g) {
  return {{"align_corners", *g.find_attr("align_corners")},
          {"half_pixel_centers", *g.find_attr("half_pixel_centers")}};
}

void bilinear_grad(GradientContext& g) {
  if (g.needs(0)) g.set(0, op1("ResizeBilinearGrad", {g.grad(), g.input(0)}, placement(g)));
}

void bicubic_grad(GradientContext& g) {
  const DType dtype = g.input(0).dtype();
  if (!g.needs(0) || (dtype != DType::kFloat && dtype != DType::kDouble)) return;
  g.set(0, op1("ResizeBicubicGrad", {g.grad(), g.input(0)}, placement(g)));
}

void nearest_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor size = slice(shape(g.input(0)), {1}, {2});
  g.set(0, op1("ResizeNearestNeighborGrad", {g.grad(), size}, placement(g)));
}

void translate_grad(GradientContext& g) {
  if (!g.needs(0)) return;
  const Tensor image = cast(g.input(0), DType::kFloat);
  const Tensor gradient =
      op1("ScaleAndTranslateGrad", {g.grad(), image, g.input(2), g.input(3)},
          {{"kernel_type", *g.find_attr("kernel_type")}, {"antialias", *g.find_attr("antialias")}});
  g.set(0, cast(gradient, g.input(0).dtype()));
}

#define TANDEM_PLACEMENT "align_corners: bool = false; half_pixel_centers: bool = false"
#define TANDEM_IMAGES \
  "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}; "

const OpRegistration kBilinear{{.name = "ResizeBilinear",
                                .inputs = "images: T, size: int32",
                                .outputs = "resized_images: float",
                                .attrs = TANDEM_IMAGES TANDEM_PLACEMENT,
                                .shape = resized_shape,
                                .gradient = bilinear_grad,
                                .traits = {.host_inputs = 0b10},
                                .doc = "Images of another size by linear interpolation."}};
const OpRegistration kBilinearGrad{
    {.name = "ResizeBilinearGrad",
     .inputs = "grads: float, original_image: T",
     .outputs = "output: T",
     .attrs = "T: {float, bfloat16, half, double}; " TANDEM_PLACEMENT,
     .shape = as_second_input,
     .doc = "The gradient of ResizeBilinear."}};
const OpRegistration kBicubic{{.name = "ResizeBicubic",
                               .inputs = "images: T, size: int32",
                               .outputs = "resized_images: float",
                               .attrs = TANDEM_IMAGES TANDEM_PLACEMENT,
                               .shape = resized_shape,
                               .gradient = bicubic_grad,
                               .traits = {.host_inputs = 0b10},
                               .doc = "Images of another size by cubic interpolation."}};
const OpRegistration kBicubicGrad{{.name = "ResizeBicubicGrad",
                                   .inputs = "grads: float, original_image: T",
                                   .outputs = "output: T",
                                   .attrs = "T: {float, double}; " TANDEM_PLACEMENT,
                                   .shape = as_second_input,
                                   .doc = "The gradient of ResizeBicubic."}};
const OpRegistration kArea{{.name = "ResizeArea",
                            .inputs = "images: T, size: int32",
                            .outputs = "resized_images: float",
                            .attrs = TANDEM_IMAGES "align_corners: bool = false",
                            .shape = resized_shape,
                            .traits = {.host_inputs = 0b10},
                            .doc = "Images of another size, each pixel the mean of its area."}};
const OpRegistration kNearest{{.name = "ResizeNearestNeighbor",
                               .inputs = "images: T, size: int32",
                               .outputs = "resized_images: T",
                               .attrs = TANDEM_IMAGES TANDEM_PLACEMENT,
                               .shape = resized_shape,
                               .gradient = nearest_grad,
                               .traits = {.host_inputs = 0b10},
                               .doc = "Images of another size from the nearest pixels."}};
const OpRegistration kNearestGrad{
    {.name = "ResizeNearestNeighborGrad",
     .inputs = "grads: T, size: int32",
     .outputs = "output: T",
     .attrs = "T: {uint8, int8, int32, half, float, double, bfloat16}; " TANDEM_PLACEMENT,
     .shape = resized_shape,
     .traits = {.host_inputs = 0b10},
     .doc = "The gradient of ResizeNearestNeighbor for images of `size`."}};
const OpRegistration kTranslate{
    {.name = "ScaleAndTranslate",
     .inputs = "images: T, size: int32, scale: float, translation: float",
     .outputs = "resized_images: float",
     .attrs = TANDEM_IMAGES "kernel_type: string = 'lanczos3'; antialias: bool = true",
     .shape = scaled_shape,
     .gradient = translate_grad,
     .traits = {.host_inputs = 0b1110},
     .doc = "Images scaled and moved, resampled with a kernel of choice."}};
const OpRegistration kTranslateGrad{
    {.name = "ScaleAndTranslateGrad",
     .inputs = "grads: T, original_image: T, scale: float, translation: float",
     .outputs = "output: T",
     .attrs = "T: {float}; kernel_type: string = 'lanczos3'; antialias: bool = true",
     .shape = as_second_input,
     .traits = {.host_inputs = 0b1100},
     .doc = "The gradient of ScaleAndTranslate."}};

AttrMap placement(const image::ResizeOptions& options) {
  return {{"align_corners", options.align_corners},
          {"half_pixel_centers", options.half_pixel_centers}};
}

}  // namespace

namespace image {

Tensor resize_bilinear(Tensor images, Tensor size, const ResizeOptions& options) {
  return call1(kBilinear, {std::move(images), std::move(size)}, placement(options));
}
Tensor resize_bicubic(Tensor images, Tensor size, const ResizeOptions& options) {
  return call1(kBicubic, {std::move(images), std::move(size)}, placement(options));
}
Tensor resize_nearest_neighbor(Tensor images, Tensor size, const ResizeOptions& options) {
  return call1(kNearest, {std::move(images), std::move(size)}, placement(options));
}
Tensor resize_area(Tensor images, Tensor size, bool align_corners) {
  return call1(kArea, {std::move(images), std::move(size)}, {{"align_corners", align_corners}});
}
Tensor scale_and_translate(Tensor images, Tensor size, Tensor scale, Tensor translation,
                           StringView kernel_type, bool antialias) {
  return call1(kTranslate,
               {std::move(images), std::move(size), std::move(scale), std::move(translation)},
               {{"kernel_type", kernel_type}, {"antialias", antialias}});
}

}  // namespace image
}  // namespace tandem
