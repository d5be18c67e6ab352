#include "tandem/ops/image_functions.h"

#include <array>
#include <cmath>

#include "tandem/core/error.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/array_ops.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/conv_ops.h"
#include "tandem/ops/image_adjust_ops.h"
#include "tandem/ops/matmul_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/pool_ops.h"
#include "tandem/ops/reduction_ops.h"
#include "tandem/ops/unary_ops.h"
#include "tandem/runtime/dispatch.h"

namespace tandem::image {
namespace {

using Matrix = std::array<float, 9>;

Tensor in_space(const Tensor& images, const Matrix& kernel, const char* what) {
  if (images.dim(-1) >= 0 && images.dim(-1) != 3) {
    throw InvalidArgumentError(cat("td::image::", what,
                                   ": the last axis must have size 3, but the "
                                   "shape is ",
                                   images.partial_shape(), "."));
  }
  const Tensor matrix = cast(reshape(Tensor(kernel), {3, 3}), images.dtype());
  return tensordot(images, matrix, {images.rank() - 1}, {0});
}

constexpr Matrix kRgbToYiq{0.299f,       0.59590059f, 0.2115f,      0.587f,     -0.27455667f,
                           -0.52273617f, 0.114f,      -0.32134392f, 0.31119955f};
constexpr Matrix kYiqToRgb{1.0f,         1.0f,       1.0f,         0.95598634f, -0.27201283f,
                           -1.10674021f, 0.6208248f, -0.64720424f, 1.70423049f};
constexpr Matrix kRgbToYuv{0.299f,       -0.14714119f, 0.61497538f, 0.587f,      -0.28886916f,
                           -0.51496512f, 0.114f,       0.43601035f, -0.10001026f};
constexpr Matrix kYuvToRgb{1.0f,        1.0f,        1.0f,         0.0f, -0.394642334f,
                           2.03206185f, 1.13988303f, -0.58062185f, 0.0f};

}  // namespace

Tensor rgb_to_yiq(const Tensor& images) { return in_space(images, kRgbToYiq, "rgb_to_yiq"); }
Tensor yiq_to_rgb(const Tensor& images) { return in_space(images, kYiqToRgb, "yiq_to_rgb"); }
Tensor rgb_to_yuv(const Tensor& images) { return in_space(images, kRgbToYuv, "rgb_to_yuv"); }
Tensor yuv_to_rgb(const Tensor& images) { return in_space(images, kYuvToRgb, "yuv_to_rgb"); }

namespace {

Tensor floats(const Tensor& x) { return convert_image_dtype(x, float32); }

// The range of the values as floats.
double range_of(const Tensor& like, double max_val) {
  return is_integer(like.dtype())
             ? convert_image_dtype(cast(Tensor(static_cast<float>(max_val)), like.dtype()), float32)
                   .item<float>()
             : max_val;
}

void check_pair(const Tensor& a, const Tensor& b, const char* what) {
  if (a.rank() >= 3 && b.rank() >= 3 && a.partial_shape().is_compatible(b.partial_shape())) return;
  throw InvalidArgumentError(cat("td::image::", what,
                                 ": two images, or batches of them, of equal shapes are wanted, "
                                 "not ",
                                 a.partial_shape(), " and ", b.partial_shape(), "."));
}

Tensor gaussian(const SsimOptions& o, std::int64_t channels) {
  std::vector<double> line;
  const double middle = (static_cast<double>(o.filter_size) - 1) / 2;
  for (std::int64_t i = 0; i < o.filter_size; ++i) {
    const double d = static_cast<double>(i) - middle;
    line.push_back(-0.5 * d * d / (o.filter_sigma * o.filter_sigma));
  }
  double total = 0;
  std::vector<double> window;
  for (const double y : line)
    for (const double x : line) window.push_back(std::exp(x + y));
  for (const double w : window) total += w;
  std::vector<float> kernel;
  for (const double w : window) kernel.push_back(static_cast<float>(w / total));
  return tile(reshape(Tensor(kernel), {o.filter_size, o.filter_size, 1, 1}), {1, 1, channels, 1});
}

struct Likeness {
  Tensor ssim, contrast;  // of each channel, [..., channels]
};

Likeness likeness(const Tensor& x, const Tensor& y, double max_val, const SsimOptions& o) {
  const std::int64_t channels = x.dim(-1);
  const Tensor kernel = gaussian(o, channels);
  const Tensor sizes = shape(x);
  const auto blurred = [&](const Tensor& image) {
    const Tensor flat = reshape(image, IntList(concat({Tensor{-1}, sizes[Slice(-3, none)]}, 0)));
    const Tensor y2 = nn::depthwise_conv2d(flat, kernel, 1, "VALID");
    return reshape(y2, IntList(concat({sizes[Slice(none, -3)], shape(y2)[Slice(1, none)]}, 0)));
  };
  const double c1 = std::pow(o.k1 * max_val, 2), c2 = std::pow(o.k2 * max_val, 2);
  const Tensor mean_x = blurred(x), mean_y = blurred(y);
  const Tensor product = mean_x * mean_y * 2.0, squares = square(mean_x) + square(mean_y);
  const Tensor luminance = (product + c1) / (squares + c1);
  const Tensor both = blurred(x * y) * 2.0, each = blurred(square(x) + square(y));
  const Tensor contrast = (both - product + c2) / (each - squares + c2);
  return {reduce_mean(luminance * contrast, {-3, -2}), reduce_mean(contrast, {-3, -2})};
}

}  // namespace

Tensor psnr(const Tensor& a, const Tensor& b, double max_val) {
  check_pair(a, b, "psnr");
  const double range = range_of(a, max_val);
  const Tensor error = reduce_mean(math::squared_difference(floats(a), floats(b)), {-3, -2, -1});
  return 20 * std::log(range) / std::log(10.0) - math::log(error) * (10 / std::log(10.0));
}

Tensor ssim(const Tensor& img1, const Tensor& img2, double max_val, const SsimOptions& options) {
  check_pair(img1, img2, "ssim");
  const Likeness l = likeness(floats(img1), floats(img2), range_of(img1, max_val), options);
  return reduce_mean(l.ssim, -1);
}

Tensor ssim_multiscale(const Tensor& img1, const Tensor& img2, double max_val,
                       const std::vector<double>& power_factors, const SsimOptions& options) {
  check_pair(img1, img2, "ssim_multiscale");
  const double range = range_of(img1, max_val);
  Tensor x = floats(img1), y = floats(img2), product;
  for (std::size_t i = 0; i < power_factors.size(); ++i) {
    if (i > 0) {
      const auto halved = [](const Tensor& image) {
        const Tensor sizes = shape(image);
        Tensor flat = reshape(image, IntList(concat({Tensor{-1}, sizes[Slice(-3, none)]}, 0)));
        // An odd row or column at the end is repeated.
        std::vector<std::int64_t> paddings(8, 0);
        for (int axis = 1; axis < 3; ++axis)
          paddings[static_cast<std::size_t>(2 * axis) + 1] = flat.dim(axis) % 2;
        if (paddings[3] + paddings[5] > 0)
          flat = pad(flat, Tensor::from(paddings, {4, 2}), PadMode::kSymmetric);
        const Tensor half = nn::avg_pool2d(flat, 2, 2, "VALID");
        return reshape(half,
                       IntList(concat({sizes[Slice(none, -3)], shape(half)[Slice(1, none)]}, 0)));
      };
      x = halved(x);
      y = halved(y);
    }
    const bool last = i + 1 == power_factors.size();
    const Likeness l = likeness(x, y, range, options);
    const Tensor factor = pow(maximum(last ? l.ssim : l.contrast, 0.0), power_factors[i]);
    product = product.defined() ? product * factor : factor;
  }
  return reduce_mean(product, -1);
}

namespace {

SampledBox sampled(const char* op, std::vector<Tensor> inputs, AttrMap attrs,
                   const SampleBoxOptions& o) {
  attrs.set("aspect_ratio_range", o.aspect_ratio_range);
  attrs.set("area_range", o.area_range);
  attrs.set("max_attempts", o.max_attempts);
  attrs.set("use_image_if_no_bounding_boxes", o.use_image_if_no_bounding_boxes);
  auto out = raw_op(op, inputs, attrs);
  return {std::move(out[0]), std::move(out[1]), std::move(out[2])};
}

}  // namespace

SampledBox sample_distorted_bounding_box(const Tensor& image_size, const Tensor& bounding_boxes,
                                         std::int64_t seed, const SampleBoxOptions& o) {
  return sampled("SampleDistortedBoundingBoxV2",
                 {image_size, bounding_boxes, Tensor(o.min_object_covered)},
                 {{"seed", seed}, {"seed2", std::int64_t{0}}}, o);
}
SampledBox stateless_sample_distorted_bounding_box(const Tensor& image_size,
                                                   const Tensor& bounding_boxes,
                                                   const IntList& seed, const SampleBoxOptions& o) {
  return sampled("StatelessSampleDistortedBoundingBox",
                 {image_size, bounding_boxes, Tensor(o.min_object_covered), seed.tensor()}, {}, o);
}

Tensor non_max_suppression_overlaps(const Tensor& overlaps, const Tensor& scores,
                                    const Tensor& max_output_size, float overlap_threshold,
                                    float score_threshold) {
  return raw_op(
      "NonMaxSuppressionWithOverlaps",
      {overlaps, scores, max_output_size, Tensor(overlap_threshold), Tensor(score_threshold)})[0];
}

}  // namespace tandem::image
