// Colours.

#include <cmath>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/image_ops.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void colour_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 1);
  PartialShape out = c.input(0);
  if (out.has_rank()) out.set_dim(out.rank() - 1, c.merge_dim(out.dim(-1), 3, "the last axis"));
  c.set_output(0, std::move(out));
}

void adjusted_shape(InferenceContext& c) {
  c.require_rank_at_least(0, 3);
  c.require_rank(1, 0);
  c.set_output(0, c.input(0));
}

// Value is the largest channel; saturation (largest − smallest) / largest; hue a quotient whose
// numerator depends on which channel is the largest.
void rgb_to_hsv_grad(GradientContext& g) {
  const DType dtype = g.input(0).dtype();
  const auto flag = [&](const Tensor& yes) { return cast(yes, dtype); };
  const std::vector<Tensor> rgb = unstack(g.input(0), 3, -1);
  const std::vector<Tensor> grads = unstack(g.grad(), 3, -1);
  const Tensor &red = rgb[0], &green = rgb[1], &blue = rgb[2];
  const Tensor largest[3] = {flag(logical_and(greater_equal(red, blue), greater_equal(red, green))),
                             flag(logical_and(greater(green, red), greater_equal(green, blue))),
                             flag(logical_and(greater(blue, red), greater(blue, green)))};
  const Tensor smallest[3] = {flag(logical_and(less(red, blue), less(red, green))),
                              flag(logical_and(less_equal(green, red), less(green, blue))),
                              flag(logical_and(less_equal(blue, red), less_equal(blue, green)))};
  const Tensor most = maximum(red, maximum(green, blue));
  const Tensor least = minimum(red, minimum(green, blue));
  const Tensor range = most - least;
  const Tensor numerator =
      largest[0] * (green - blue) + largest[1] * (blue - red) + largest[2] * (red - green);
  // TensorFlow's numbers: nothing flows through the hue where no channel is positive, nor through
  // the saturation to a channel that is not.
  const Tensor has_value = flag(greater(most, 0));
  std::vector<Tensor> results;
  for (int i = 0; i < 3; ++i) {
    // In the numerator for the largest channel k, channel k + 1 counts positive, k + 2 negative.
    const Tensor in_numerator = largest[(i + 2) % 3] - largest[(i + 1) % 3];
    const Tensor in_range = largest[i] - smallest[i];
    const Tensor hue = has_value * math::divide_no_nan(in_numerator * range - numerator * in_range,
                                                       range * range * 6.0);
    const Tensor saturation =
        flag(greater(rgb[i], 0)) * (math::divide_no_nan(largest[i] * least, most * most) -
                                    math::divide_no_nan(smallest[i], most));
    results.push_back(grads[0] * hue + grads[1] * saturation + grads[2] * largest[i]);
  }
  g.set(0, stack(results, -1));
}

const OpRegistration kToHsv{{.name = "RGBToHSV",
                             .inputs = "images: T",
                             .outputs = "output: T",
                             .attrs = "T: {half, bfloat16, float, double} = float",
                             .shape = colour_shape,
                             .gradient = rgb_to_hsv_grad,
                             .doc = "Red, green and blue as hue, saturation and value."}};
const OpRegistration kToRgb{{.name = "HSVToRGB",
                             .inputs = "images: T",
                             .outputs = "output: T",
                             .attrs = "T: {half, bfloat16, float, double} = float",
                             .shape = colour_shape,
                             .doc = "Hue, saturation and value as red, green and blue."}};
const OpRegistration kContrast{{.name = "AdjustContrastv2",
                                .inputs = "images: T, contrast_factor: float",
                                .outputs = "output: T",
                                .attrs = "T: {half, float} = float",
                                .shape = adjusted_shape,
                                .doc = "Differences from each channel's mean over the image, times "
                                       "the factor."}};
const OpRegistration kHue{{.name = "AdjustHue",
                           .inputs = "images: T, delta: float",
                           .outputs = "output: T",
                           .attrs = "T: {half, float} = float",
                           .shape = adjusted_shape,
                           .doc = "Hues turned by delta."}};
const OpRegistration kSaturation{{.name = "AdjustSaturation",
                                  .inputs = "images: T, scale: float",
                                  .outputs = "output: T",
                                  .attrs = "T: {half, float} = float",
                                  .shape = adjusted_shape,
                                  .doc = "Saturations times the scale, at most 1."}};

}  // namespace

namespace image {

Tensor rgb_to_hsv(Tensor images) { return call1(kToHsv, {std::move(images)}); }
Tensor hsv_to_rgb(Tensor images) { return call1(kToRgb, {std::move(images)}); }
Tensor in_float(Tensor image) {
  const DType dtype = image.dtype();
  if (dtype == DType::kHalf || dtype == DType::kFloat) return image;
  return convert_image_dtype(std::move(image), DType::kFloat);
}

Tensor adjust_contrast(Tensor images, Tensor contrast_factor) {
  const DType dtype = images.dtype();
  return convert_image_dtype(
      call1(kContrast, {in_float(std::move(images)), std::move(contrast_factor)}), dtype, true);
}

Tensor adjust_hue(Tensor image, Tensor delta) {
  const DType dtype = image.dtype();
  if (const Array* known = internal::known_value(delta);
      known != nullptr && known->num_elements() == 1 && known->dtype() == DType::kFloat &&
      !(std::abs(known->data<float>()[0]) <= 1)) {
    throw InvalidArgumentError(
        cat("td::image::adjust_hue: delta must be in the interval [-1, 1], "
            "got ",
            known->data<float>()[0], "."));
  }
  return convert_image_dtype(call1(kHue, {in_float(std::move(image)), std::move(delta)}), dtype);
}

Tensor adjust_saturation(Tensor image, Tensor saturation_factor) {
  const DType dtype = image.dtype();
  return convert_image_dtype(
      call1(kSaturation, {in_float(std::move(image)), std::move(saturation_factor)}), dtype);
}

}  // namespace image
}  // namespace tandem
