#pragma once

#include <cstdint>

#include "tandem/core/export.h"
#include "tandem/ops/image_codec_ops.h"
#include "tandem/runtime/tensor.h"

namespace tandem::image {

/// uint8 [1, height, width, channels] of a WebP image; `channels`: 3 or 4, as the image has, or 0.
/// Bytes that are no such image and another number of channels throw InvalidArgumentError,
/// animations UnimplementedError. Uses the library libwebp (Debian: libwebp7), and throws
/// UnimplementedError where it is not installed.
TANDEM_EXPORT Tensor decode_webp(Tensor contents, std::int64_t channels = 0);

}  // namespace tandem::image

namespace tandem::io {

using image::decode_webp;

}  // namespace tandem::io
