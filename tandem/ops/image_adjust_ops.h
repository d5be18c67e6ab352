#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Values of images changed. Images are [..., height, width, channels]; those of an integer dtype
/// are changed as floats in [0, 1] and come back in their dtype.
namespace tandem::image {

/// Between integer dtypes, which range over all their values, and floating ones, which range over
/// [0, 1]. With `saturate` what does not fit becomes the nearest that does.
TANDEM_EXPORT Tensor convert_image_dtype(Tensor image, DType dtype, bool saturate = false);

/// half and float images as they are, others as float in [0, 1].
TANDEM_EXPORT Tensor in_float(Tensor image);

/// `delta` added, on the scale of `in_float`: floats that hold 0 to 255 take 16, all integer images
/// and floats in [0, 1] take 16 / 255.
TANDEM_EXPORT Tensor adjust_brightness(Tensor image, Tensor delta);
/// gain · image ^ gamma; throws InvalidArgumentError for a negative gamma.
TANDEM_EXPORT Tensor adjust_gamma(Tensor image, Tensor gamma = 1.0f, Tensor gain = 1.0f);
/// Written as JPEG of this quality (int32 in [0, 100]) and read again: [height, width, 1 or 3].
TANDEM_EXPORT Tensor adjust_jpeg_quality(Tensor image, Tensor jpeg_quality,
                                         StringView dct_method = "");
/// Each image with mean 0 and variance 1, as float.
TANDEM_EXPORT Tensor per_image_standardization(Tensor image);

/// 0.2989 red + 0.587 green + 0.114 blue; the last axis becomes 1.
TANDEM_EXPORT Tensor rgb_to_grayscale(Tensor images);
/// The only channel three times.
TANDEM_EXPORT Tensor grayscale_to_rgb(Tensor images);

// Adjust images by a random amount, one for all images given, from [-max_delta, max_delta) or
// [lower, upper). Throw InvalidArgumentError for ranges that are empty or negative.
using Seed = std::optional<std::int64_t>;
TANDEM_EXPORT Tensor random_brightness(Tensor image, float max_delta, Seed seed = {});
TANDEM_EXPORT Tensor random_contrast(Tensor image, float lower, float upper, Seed seed = {});
/// max_delta in [0, 0.5].
TANDEM_EXPORT Tensor random_hue(Tensor image, float max_delta, Seed seed = {});
TANDEM_EXPORT Tensor random_saturation(Tensor image, float lower, float upper, Seed seed = {});
TANDEM_EXPORT Tensor random_jpeg_quality(Tensor image, int min_jpeg_quality, int max_jpeg_quality,
                                         Seed seed = {});

}  // namespace tandem::image
