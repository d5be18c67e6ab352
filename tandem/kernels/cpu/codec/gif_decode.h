#pragma once

#include <cstdint>
#include <string_view>

#include "tandem/kernels/cpu/codec/image_size.h"

namespace tandem::cpu {

enum class GifFrames {
  kAll,    ///< `ImageSize::frames` says how many
  kFirst,  ///< on a canvas that all of them fit
  kOnly,   ///< InvalidArgumentError if there are several
};

/// The pixels of a GIF image as RGB, each frame over the one before; `channels` is 3 or 0. Black
/// where nothing was drawn. Frames are given up to the first that is damaged or cut off. Throws
/// InvalidArgumentError for other bytes.
void decode_gif(std::string_view bytes, std::int64_t channels, GifFrames frames,
                const PixelMemory<std::uint8_t>& memory);

}  // namespace tandem::cpu
