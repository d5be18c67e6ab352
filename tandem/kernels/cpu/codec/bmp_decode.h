#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/kernels/cpu/codec/image_size.h"

namespace tandem::cpu {

/// The pixels of an uncompressed BMP image of 8 (grey), 24 or 32 bits; `channels` is 3, 4, or 0 for
/// as many as the image has. Throws InvalidArgumentError for other bytes.
void decode_bmp(std::string_view bytes, std::int64_t channels,
                const PixelMemory<std::uint8_t>& memory);

}  // namespace tandem::cpu
