#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

/// Colour spaces, measures of likeness and boxes.
namespace tandem::image {

// ---- Colours in the last axis, of three channels. ----

TANDEM_EXPORT Tensor rgb_to_yiq(const Tensor& images);
TANDEM_EXPORT Tensor yiq_to_rgb(const Tensor& images);
TANDEM_EXPORT Tensor rgb_to_yuv(const Tensor& images);
TANDEM_EXPORT Tensor yuv_to_rgb(const Tensor& images);

// ---- Measures of images of equal shapes, one number an image; max_val is the range. ----

/// The peak signal-to-noise ratio in dB.
TANDEM_EXPORT Tensor psnr(const Tensor& a, const Tensor& b, double max_val);
struct SsimOptions {
  std::int64_t filter_size = 11;
  double filter_sigma = 1.5;
  double k1 = 0.01;
  double k2 = 0.03;
};
/// Structural similarity (Wang et al. 2004).
TANDEM_EXPORT Tensor ssim(const Tensor& img1, const Tensor& img2, double max_val,
                          const SsimOptions& options = {});
/// … over several scales, of these weights.
TANDEM_EXPORT Tensor ssim_multiscale(const Tensor& img1, const Tensor& img2, double max_val,
                                     const std::vector<double>& power_factors = {0.0448, 0.2856,
                                                                                 0.3001, 0.2363,
                                                                                 0.1333},
                                     const SsimOptions& options = {});

// ---- Boxes. ----

/// A box for cropping at random around one of the bounding boxes [1, n, 4].
struct SampledBox {
  Tensor begin, size;  ///< for td::slice
  Tensor bboxes;       ///< for draw_bounding_boxes
};
struct SampleBoxOptions {
  float min_object_covered = 0.1f;
  std::vector<float> aspect_ratio_range = {0.75f, 1.33f};
  std::vector<float> area_range = {0.05f, 1};
  std::int64_t max_attempts = 100;
  bool use_image_if_no_bounding_boxes = false;
};
TANDEM_EXPORT SampledBox sample_distorted_bounding_box(const Tensor& image_size,
                                                       const Tensor& bounding_boxes,
                                                       std::int64_t seed = 0,
                                                       const SampleBoxOptions& options = {});
TANDEM_EXPORT SampledBox
stateless_sample_distorted_bounding_box(const Tensor& image_size, const Tensor& bounding_boxes,
                                        const IntList& seed, const SampleBoxOptions& options = {});
/// Non-maximum suppression for overlaps [n, n] that are given.
TANDEM_EXPORT Tensor non_max_suppression_overlaps(const Tensor& overlaps, const Tensor& scores,
                                                  const Tensor& max_output_size,
                                                  float overlap_threshold = 0.5f,
                                                  float score_threshold = -3.402823466e38f);

/// Names of resize's methods, "bilinear" and so on.
struct ResizeMethod {
  static constexpr std::string_view AREA = "area";
  static constexpr std::string_view BICUBIC = "bicubic";
  static constexpr std::string_view BILINEAR = "bilinear";
  static constexpr std::string_view GAUSSIAN = "gaussian";
  static constexpr std::string_view LANCZOS3 = "lanczos3";
  static constexpr std::string_view LANCZOS5 = "lanczos5";
  static constexpr std::string_view MITCHELLCUBIC = "mitchellcubic";
  static constexpr std::string_view NEAREST_NEIGHBOR = "nearest";
};

}  // namespace tandem::image
