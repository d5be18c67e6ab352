#pragma once

#include "tandem/core/export.h"
#include "tandem/ops/int_list.h"
#include "tandem/runtime/tensor.h"

/// The random changes of image_adjust_ops.h and image_transform_ops.h by two int32 or int64 numbers
/// alone: equal `seed`s change equal images alike, whatever was drawn before. As tf.image's.
namespace tandem::image {

/// Flipped or not, with equal chance, each image of a batch by itself.
TANDEM_EXPORT Tensor stateless_random_flip_left_right(Tensor image, const IntList& seed);
TANDEM_EXPORT Tensor stateless_random_flip_up_down(Tensor image, const IntList& seed);
/// A part of `size` (as long as the rank of `value`) from a random place.
TANDEM_EXPORT Tensor stateless_random_crop(Tensor value, const IntList& size, const IntList& seed);

// By an amount from [-max_delta, max_delta) or [lower, upper), one for all images given. Throw
// InvalidArgumentError for ranges that are empty or negative.
TANDEM_EXPORT Tensor stateless_random_brightness(Tensor image, float max_delta,
                                                 const IntList& seed);
TANDEM_EXPORT Tensor stateless_random_contrast(Tensor image, float lower, float upper,
                                               const IntList& seed);
/// max_delta in [0, 0.5].
TANDEM_EXPORT Tensor stateless_random_hue(Tensor image, float max_delta, const IntList& seed);
TANDEM_EXPORT Tensor stateless_random_saturation(Tensor image, float lower, float upper,
                                                 const IntList& seed);
TANDEM_EXPORT Tensor stateless_random_jpeg_quality(Tensor image, int min_jpeg_quality,
                                                   int max_jpeg_quality, const IntList& seed);

}  // namespace tandem::image
