#include "tandem/kernels/cpu/codec/png_encode.h"

#include <bit>
#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include <png.h>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

constexpr std::int64_t kMaxSide = 1'000'000;

// The library calls back from C, so what its functions grow is C memory.
struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump;
  char* bytes = nullptr;
  std::size_t size = 0, capacity = 0;
  char message[160] = "";

  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    png_destroy_write_struct(&png, &info);
    std::free(bytes);
  }
};

[[noreturn]] void leave(png_structp png, png_const_charp message) {
  auto& w = *static_cast<Writer*>(png_get_error_ptr(png));
  std::strncpy(w.message, message, sizeof(w.message) - 1);
  std::longjmp(w.jump, 1);
}

void ignore(png_structp, png_const_charp) {}

void append(png_structp png, png_bytep data, png_size_t count) {
  auto& w = *static_cast<Writer*>(png_get_io_ptr(png));
  if (count > w.capacity - w.size) {
    const std::size_t wanted = 2 * w.capacity + count;
    void* grown = std::realloc(w.bytes, wanted);
    if (grown == nullptr) png_error(png, "out of memory");
    w.bytes = static_cast<char*>(grown);
    w.capacity = wanted;
  }
  std::memcpy(w.bytes + w.size, data, count);
  w.size += count;
}

void flush(png_structp) {}

// No object with a destructor here: the library's errors jump back to its beginning.
bool write(Writer& w, const png_byte* pixels, const ImageSize& size, int bytes_per_sample,
           int compression) {
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, leave, ignore);
  if (w.png == nullptr || setjmp(w.jump)) return false;
  w.info = png_create_info_struct(w.png);
  if (w.info == nullptr) return false;
  png_set_write_fn(w.png, &w, append, flush);
  png_set_compression_level(w.png, compression);
  png_set_compression_mem_level(w.png, 9);
  png_set_IHDR(w.png, w.info, static_cast<png_uint_32>(size.width),
               static_cast<png_uint_32>(size.height), 8 * bytes_per_sample,
               kTypes[size.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(w.png, w.info);
  if (bytes_per_sample == 2 && std::endian::native == std::endian::little) png_set_swap(w.png);
  const std::int64_t stride = size.width * size.channels * bytes_per_sample;
  for (std::int64_t y = 0; y < size.height; ++y) png_write_row(w.png, pixels + y * stride);
  png_write_end(w.png, nullptr);
  return true;
}

}  // namespace

std::string encode_png(const void* pixels, const ImageSize& size, int bytes_per_sample,
                       std::int64_t compression) {
  if (size.channels < 1 || size.channels > 4) {
    throw InvalidArgumentError(cat("image must have 1, 2, 3 or 4 channels, got ", size.channels));
  }
  if (size.height <= 0 || size.width <= 0 || size.height > kMaxSide || size.width > kMaxSide) {
    throw InvalidArgumentError(cat("An image of ", size.height, " x ", size.width,
                                   " cannot be a PNG image: sides go from 1 to ", kMaxSide));
  }
  if (compression < -1 || compression > 9) {
    throw InvalidArgumentError(cat("compression should be in [-1,9], got ", compression));
  }
  Writer w;
  if (!write(w, static_cast<const png_byte*>(pixels), size, bytes_per_sample,
             static_cast<int>(compression))) {
    throw InternalError(cat("The PNG library could not encode: ", w.message));
  }
  return {w.bytes, w.size};
}

}  // namespace tandem::cpu
