#pragma once

#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem::data {

/// Writes an image as a PNG file: uint8 of shape [height,width,channels], with 1 (grey), 2 (grey
/// and alpha), 3 (RGB) or 4 (RGBA) channels. The file is complete or not there. Throws
/// InvalidArgumentError for other tensors, and what fs says of the path (NotFoundError if the
/// folder is missing).
TANDEM_EXPORT void write_png(const String& path, const Tensor& image);

/// The image of a PNG file, uint8 [height,width,channels] with as many channels as the file has;
/// colours of a palette become RGB, 16 bits become 8. Throws DataLossError if the file is damaged
/// or no PNG, NotFoundError if it is missing.
TANDEM_EXPORT Tensor read_png(const String& path);

/// Encodes to and decodes from bytes in memory; errors call them `name`.
TANDEM_EXPORT std::string encode_png(const Tensor& image);
TANDEM_EXPORT Tensor decode_png(std::string_view bytes, const String& name);

}  // namespace tandem::data
