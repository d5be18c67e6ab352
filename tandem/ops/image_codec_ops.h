#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

/// Images from bytes and as bytes. Bytes that are no image, or only part of one, throw
/// InvalidArgumentError; an image of more than 2^29 samples, or with more pixels than its bytes
/// could hold, is refused before memory is taken.
namespace tandem::image {

struct DecodeJpegOptions {
  std::int64_t channels = 0;  ///< 1 (grey), 3 (RGB), 0: as the image has
  std::int64_t ratio = 1;     ///< sides divided by 1, 2, 4 or 8 while decoding
  /// Height and width: each image is decoded with the largest ratio that leaves it at least this
  /// size, which is much cheaper where it is resized to that anyway. Pixels are then no longer
  /// those of TensorFlow, and TensorFlow cannot read the graph. {0, 0}: as `ratio` says.
  std::array<std::int64_t, 2> least_size = {0, 0};
  bool fancy_upscaling = true;
  bool try_recover_truncated = false;  ///< missing lines repeat the last one
  float acceptable_fraction = 1;       ///< of the lines that must be there; others are black
  String dct_method = "";              ///< "INTEGER_FAST" (also meant by "") or "INTEGER_ACCURATE"
};
/// uint8 [height, width, channels]; PNG images are taken too. Pixels equal TensorFlow's.
TANDEM_EXPORT Tensor decode_jpeg(Tensor contents, const DecodeJpegOptions& options = {});
/// The window (y, x, height, width), int32, of what decode_jpeg gives, without decoding the rest.
TANDEM_EXPORT Tensor decode_and_crop_jpeg(Tensor contents, Tensor crop_window,
                                          const DecodeJpegOptions& options = {});
/// Height, width and channels, read from the header alone. int32 or int64.
TANDEM_EXPORT Tensor extract_jpeg_shape(Tensor contents, DType output_type = int32);

/// uint8 or uint16 [height, width, channels]; `channels`: 1, 3, 4 or 0. JPEG images are taken too,
/// and by this and decode_jpeg GIF images of one frame.
TANDEM_EXPORT Tensor decode_png(Tensor contents, std::int64_t channels = 0, DType dtype = uint8);
/// uint8 [height, width, channels] of an uncompressed image of 8, 24 or 32 bits; `channels`: 3, 4
/// or 0.
TANDEM_EXPORT Tensor decode_bmp(Tensor contents, std::int64_t channels = 0);
/// uint8 [frames, height, width, 3] of a GIF image, each frame over the one before, black where
/// nothing was drawn. Frames are given up to the first that is damaged. JPEG and PNG images have
/// one.
TANDEM_EXPORT Tensor decode_gif(Tensor contents);
/// JPEG, PNG, GIF or BMP by its first bytes. Floating dtypes range over [0, 1], integers over all
/// of theirs. GIF images have an axis of frames; without `expand_animations` their first frame is
/// given, without that axis.
TANDEM_EXPORT Tensor decode_image(Tensor contents, std::int64_t channels = 0, DType dtype = uint8,
                                  bool expand_animations = true);
/// A bool: the bytes begin as a JPEG image.
TANDEM_EXPORT Tensor is_jpeg(Tensor contents);

struct EncodeJpegOptions {
  String format = "";  ///< "grayscale", "rgb", or as the channels say
  std::int64_t quality = 95;
  bool progressive = false;
  bool optimize_size = false;
  bool chroma_downsampling = true;
  String density_unit = "in";  ///< or "cm"
  std::int64_t x_density = 300;
  std::int64_t y_density = 300;
  String xmp_metadata = "";
};
/// The bytes of a JPEG image of uint8 [height, width, 1 or 3], a string scalar.
TANDEM_EXPORT Tensor encode_jpeg(Tensor image, const EncodeJpegOptions& options = {});
/// Encodes a JPEG image with a computed quality, an int32 scalar.
TANDEM_EXPORT Tensor encode_jpeg_variable_quality(Tensor image, Tensor quality);
/// The bytes of PNG images of uint8 or uint16 [..., height, width, 1 to 4], strings [...].
/// `compression` goes from 0 to 9; -1: usual.
TANDEM_EXPORT Tensor encode_png(Tensor image, std::int64_t compression = -1);

}  // namespace tandem::image
