#pragma once

// Names of tf.io that are declared elsewhere: see tandem/ops/names/math.h.

#include "tandem/ops/image_codec_ops.h"

namespace tandem::io {

using image::decode_and_crop_jpeg;
using image::decode_bmp;
using image::decode_gif;
using image::decode_image;
using image::decode_jpeg;
using image::decode_png;
using image::encode_jpeg;
using image::encode_png;
using image::extract_jpeg_shape;
using image::is_jpeg;

}  // namespace tandem::io
