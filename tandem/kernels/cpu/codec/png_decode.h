#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/kernels/cpu/codec/image_size.h"

namespace tandem::cpu {

/// The pixels of a PNG image, as TensorFlow gives them, in 8 or 16 bits a sample. `channels` is 1,
/// 3, 4, or 0 for as many as the image has. Throws InvalidArgumentError for bytes that are no such
/// image.
void decode_png(std::string_view bytes, std::int64_t channels,
                const PixelMemory<std::uint8_t>& memory);
void decode_png(std::string_view bytes, std::int64_t channels,
                const PixelMemory<std::uint16_t>& memory);

}  // namespace tandem::cpu
