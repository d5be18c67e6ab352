#include "tandem/data/image_file.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include <png.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"

namespace tandem::data {
namespace {

constexpr png_uint_32 kFormats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                    PNG_FORMAT_RGBA};
constexpr std::int64_t kMaxSide = std::int64_t{1} << 20;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;

using Image = std::unique_ptr<png_image, void (*)(png_image*)>;

const Array& checked(const Tensor& image) {
  const Array& array = image.array();
  const Shape& shape = array.shape();
  if (array.dtype() != DType::kUint8 || array.rank() != 3 || shape[2] < 1 || shape[2] > 4) {
    throw InvalidArgumentError(
        cat("A PNG image must be uint8 of shape [height,width,channels] with 1 to 4 channels, got ",
            array.dtype(), shape, "."));
  }
  if (shape[0] < 1 || shape[1] < 1 || shape[0] > kMaxSide || shape[1] > kMaxSide ||
      array.num_elements() > kMaxBytes) {
    throw InvalidArgumentError(cat("An image of shape ", shape,
                                   " cannot be a PNG file: sides go from 1 to ", kMaxSide,
                                   ", and the whole to ", kMaxBytes, " bytes."));
  }
  return array;
}

}  // namespace

std::string encode_png(const Tensor& image) {
  const Array& array = checked(image);
  png_image header{};
  const Image end(&header, png_image_free);
  header.version = PNG_IMAGE_VERSION;
  header.height = static_cast<png_uint_32>(array.shape()[0]);
  header.width = static_cast<png_uint_32>(array.shape()[1]);
  header.format = kFormats[array.shape()[2] - 1];
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(header), '\0');
  png_alloc_size_t size = bytes.size();
  if (!png_image_write_to_memory(&header, bytes.data(), &size, 0, array.raw_data(), 0, nullptr)) {
    throw InternalError(
        cat("The PNG library could not encode ", array.shape(), ": ", header.message));
  }
  bytes.resize(size);
  return bytes;
}

Tensor decode_png(std::string_view bytes, const String& name) {
  png_image header{};
  const Image end(&header, png_image_free);
  const auto damaged = [&] {
    throw DataLossError(cat(name, ": no PNG image, or a damaged one: ", header.message, "."));
  };
  header.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&header, bytes.data(), bytes.size())) damaged();
  const std::int64_t height = header.height, width = header.width;
  const std::int64_t channels =
      PNG_IMAGE_SAMPLE_CHANNELS(header.format & ~PNG_FORMAT_FLAG_COLORMAP);
  if (height > kMaxSide || width > kMaxSide || height * width * channels > kMaxBytes) {
    throw ResourceExhaustedError(cat(name, ": an image of ", height, "x", width,
                                     " is larger than the ", kMaxBytes, " bytes allowed."));
  }
  header.format = kFormats[channels - 1];
  Array array(DType::kUint8, {height, width, channels});
  if (!png_image_finish_read(&header, nullptr, array.raw_data(), 0, nullptr)) damaged();
  return Tensor(std::move(array));
}

void write_png(const String& path, const Tensor& image) { fs::write_file(path, encode_png(image)); }

Tensor read_png(const String& path) { return decode_png(fs::read_file(path), path); }

}  // namespace tandem::data
