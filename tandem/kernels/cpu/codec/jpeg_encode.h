#pragma once

#include <cstdint>
#include <string>

#include "tandem/kernels/cpu/codec/image_size.h"

namespace tandem::cpu {

struct JpegEncodeOptions {
  std::int64_t quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  bool density_in_cm = false;  ///< pixels by centimetre, not by inch
  std::int64_t x_density = 300;
  std::int64_t y_density = 300;
  std::string xmp_metadata;
};

/// The bytes of a JPEG image of 1 or 3 channels. Throws InvalidArgumentError for other sizes and
/// options out of range.
std::string encode_jpeg(const std::uint8_t* pixels, const ImageSize& size,
                        const JpegEncodeOptions& options);

}  // namespace tandem::cpu
