#pragma once

#include <string>

#include "tandem/kernels/cpu/codec/image_size.h"

namespace tandem::cpu {

/// The bytes of a PNG image of 1 to 4 channels, `bytes_per_sample` 1 or 2. `compression` goes from
/// 0 to 9; -1 is zlib's own. Throws InvalidArgumentError for other sizes.
std::string encode_png(const void* pixels, const ImageSize& size, int bytes_per_sample,
                       std::int64_t compression);

}  // namespace tandem::cpu
