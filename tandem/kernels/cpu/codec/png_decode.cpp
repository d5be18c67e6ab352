#include "tandem/kernels/cpu/codec/png_decode.h"

#include <bit>
#include <csetjmp>
#include <cstring>

#include <png.h>

#include "tandem/core/error.h"

// The PNG library reports errors by a jump. Each function below that calls it sets the place to
// return to and has no object with a destructor; memory belongs to its callers.

namespace tandem::cpu {
namespace {

constexpr std::int64_t kMaxSide = std::int64_t{1} << 27;
// Deflate makes at most 1032 bytes of one.
constexpr std::int64_t kMaxInflation = 1040;

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump;
  const char* next = nullptr;
  std::size_t left = 0;
  std::size_t size = 0;
  char message[160] = "";
  ImageSize image;
  std::int64_t stored_bytes = 0;  // of a row as the file has it
  std::int64_t row_bytes = 0;     // as the library will give it
  int passes = 1;
  bool widen = false;  // samples of 8 bits, wanted in 16

  explicit Reader(std::string_view bytes)
      : next(bytes.data()), left(bytes.size()), size(bytes.size()) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void leave(png_structp png, png_const_charp message) {
  auto& r = *static_cast<Reader*>(png_get_error_ptr(png));
  std::strncpy(r.message, message, sizeof(r.message) - 1);
  std::longjmp(r.jump, 1);
}

void ignore(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, png_size_t count) {
  auto& r = *static_cast<Reader*>(png_get_io_ptr(png));
  if (count > r.left) png_error(png, "the data end too early");
  std::memcpy(out, r.next, count);
  r.next += count;
  r.left -= count;
}

// Steps and their order are TensorFlow's, for equal pixels also where they are odd.
void ask_for(Reader& r, bool wide, int color_type, int depth, bool has_transparency) {
  const bool has_alpha = (color_type & PNG_COLOR_MASK_ALPHA) != 0;
  const bool is_grey = (color_type & PNG_COLOR_MASK_COLOR) == 0;
  if (r.image.channels % 2 == 0) {
    if (!has_alpha && has_transparency) {
      png_set_tRNS_to_alpha(r.png);
    } else if (!has_alpha) {
      png_set_add_alpha(r.png, (1u << depth) - 1, PNG_FILLER_AFTER);
    }
  } else if (has_alpha || has_transparency) {
    png_set_strip_alpha(r.png);
  }
  if (depth > 8 && !wide) png_set_strip_16(r.png);
  r.widen = depth <= 8 && wide;
  png_set_packing(r.png);
  r.passes = png_set_interlace_handling(r.png);
  if (wide && std::endian::native == std::endian::little) png_set_swap(r.png);
  if (color_type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r.png);
  if (is_grey && depth < 8) png_set_expand_gray_1_2_4_to_8(r.png);
  if (r.image.channels < 3 && !is_grey) {
    png_set_rgb_to_gray(r.png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  } else if (r.image.channels >= 3 && is_grey) {
    png_set_gray_to_rgb(r.png);
  }
}

std::int64_t stored_channels(const Reader& r, int color_type, bool has_transparency) {
  if (color_type != PNG_COLOR_TYPE_PALETTE) return png_get_channels(r.png, r.info);
  return has_transparency ? 4 : 3;
}

// Reads all that comes before the pixels.
void read_info(Reader& r, std::int64_t channels, bool wide) {
  png_set_read_fn(r.png, &r, read_bytes);
  png_read_info(r.png, r.info);
  png_uint_32 width = 0, height = 0;
  int depth = 0, color_type = 0;
  png_get_IHDR(r.png, r.info, &width, &height, &depth, &color_type, nullptr, nullptr, nullptr);
  const bool has_transparency = png_get_valid(r.png, r.info, PNG_INFO_tRNS) != 0;
  r.image = {height, width,
             channels != 0 ? channels : stored_channels(r, color_type, has_transparency)};
  r.stored_bytes = static_cast<std::int64_t>(png_get_rowbytes(r.png, r.info));
  ask_for(r, wide, color_type, depth, has_transparency);
  png_read_update_info(r.png, r.info);
  r.row_bytes = static_cast<std::int64_t>(png_get_rowbytes(r.png, r.info));
}

bool begin(Reader& r, std::int64_t channels, bool wide) {
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, leave, ignore);
  if (r.png == nullptr || setjmp(r.jump)) return false;
  r.info = png_create_info_struct(r.png);
  if (r.info == nullptr) return false;
  read_info(r, channels, wide);
  return true;
}

bool read_rows(Reader& r, png_bytep out, std::int64_t stride) {
  if (setjmp(r.jump)) return false;
  for (int pass = 0; pass < r.passes; ++pass) {
    for (std::int64_t y = 0; y < r.image.height; ++y) {
      png_read_row(r.png, out + y * stride, nullptr);
    }
  }
  png_read_end(r.png, r.info);
  return true;
}

[[noreturn]] void fail(const Reader& r) {
  throw InvalidArgumentError(cat("Invalid PNG data, ", r.size, " bytes: ",
                                 r.message[0] != '\0' ? r.message : "no memory for the decoder"));
}

template <class T>
void decode(std::string_view bytes, std::int64_t channels, const PixelMemory<T>& memory) {
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4) {
    throw InvalidArgumentError(cat("`channels` must be 0, 1, 3 or 4 but got ", channels));
  }
  Reader r(bytes);
  if (!begin(r, channels, sizeof(T) == 2)) fail(r);
  const ImageSize& size = r.image;
  if (size.height >= kMaxSide || size.width >= kMaxSide ||
      size.height * size.width >= kMaxSamples) {
    throw InvalidArgumentError(cat("PNG image too large: ", size.height, " x ", size.width));
  }
  if (size.height * r.stored_bytes / kMaxInflation > static_cast<std::int64_t>(r.size)) {
    throw InvalidArgumentError(cat("Invalid PNG data: ", r.size, " bytes cannot hold the ",
                                   size.height, " x ", size.width, " pixels announced"));
  }
  const std::int64_t samples = size.width * size.channels;
  const auto sample_bytes = static_cast<std::int64_t>(r.widen ? 1 : sizeof(T));
  if (r.row_bytes != samples * sample_bytes) {
    throw InvalidArgumentError(cat("A PNG image of this kind cannot be given ", size.channels,
                                   " channels of ", 8 * sizeof(T), " bits"));
  }
  T* out = memory(size);
  const auto stride = samples * static_cast<std::int64_t>(sizeof(T));
  if (!read_rows(r, reinterpret_cast<png_bytep>(out), stride)) fail(r);
  if constexpr (sizeof(T) == 2) {
    if (!r.widen) return;
    for (std::int64_t y = 0; y < size.height; ++y) {
      T* row = out + y * samples;
      const auto* narrow = reinterpret_cast<const std::uint8_t*>(row);
      for (std::int64_t i = samples; i-- > 0;) row[i] = static_cast<T>(narrow[i] * 257);
    }
  }
}

}  // namespace

void decode_png(std::string_view bytes, std::int64_t channels,
                const PixelMemory<std::uint8_t>& memory) {
  decode(bytes, channels, memory);
}
void decode_png(std::string_view bytes, std::int64_t channels,
                const PixelMemory<std::uint16_t>& memory) {
  decode(bytes, channels, memory);
}

}  // namespace tandem::cpu
