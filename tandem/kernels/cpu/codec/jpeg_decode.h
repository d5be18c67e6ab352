#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tandem/kernels/cpu/codec/image_size.h"

namespace tandem::cpu {

struct JpegCrop {
  std::int64_t y = 0, x = 0, height = 0, width = 0;
};

struct JpegDecodeOptions {
  std::int64_t channels = 0;  ///< 1 or 3; 0: as many as the image has
  std::int64_t ratio = 1;     ///< sides divided by 1, 2, 4 or 8
  /// If positive, `ratio` is the largest with which the image still has this size or, if it has it
  /// with none, 1.
  std::int64_t least_height = 0, least_width = 0;
  bool fancy_upscaling = true;
  bool accurate_dct = false;  ///< slower, closer to the exact transform
  bool try_recover_truncated = false;
  float acceptable_fraction = 1;  ///< of the lines; those missing are black
  std::optional<JpegCrop> crop;   ///< in the image after `ratio`
};

/// The pixels of a JPEG image, as TensorFlow gives them with the same options. Throws
/// InvalidArgumentError for options out of range and for bytes that are no such image.
void decode_jpeg(std::string_view bytes, const JpegDecodeOptions& options,
                 const PixelMemory<std::uint8_t>& memory);
/// The same, line by line: what is wrong with lines may be known only when others have been taken.
void decode_jpeg(std::string_view bytes, const JpegDecodeOptions& options, ImageLines& lines);

/// Sizes from the header alone; 4 channels where the colours are cyan, magenta, yellow and black.
ImageSize jpeg_size(std::string_view bytes);

}  // namespace tandem::cpu
