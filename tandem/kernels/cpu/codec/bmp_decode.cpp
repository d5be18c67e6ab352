#include "tandem/kernels/cpu/codec/bmp_decode.h"

#include <cstdlib>
#include <limits>

#include "tandem/core/error.h"

namespace tandem::cpu {
namespace {

// Little-endian, whatever the machine.
std::int32_t int_at(std::string_view bytes, std::size_t offset, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return count == 2 ? static_cast<std::int16_t>(value) : static_cast<std::int32_t>(value);
}

// `in` has blue, green, red and perhaps alpha, or grey alone.
void copy_row(const std::uint8_t* in, std::int64_t width, int stored, std::int64_t wanted,
              std::uint8_t* out) {
  for (std::int64_t x = 0; x < width; ++x, in += stored, out += wanted) {
    const bool grey = stored == 1;
    out[0] = in[grey ? 0 : 2];
    if (wanted == 1) continue;
    out[1] = in[grey ? 0 : 1];
    out[2] = in[0];
    if (wanted == 4) out[3] = stored == 4 ? in[3] : 255;
  }
}

}  // namespace

void decode_bmp(std::string_view bytes, std::int64_t channels,
                const PixelMemory<std::uint8_t>& memory) {
  if (channels != 0 && channels != 3 && channels != 4) {
    throw InvalidArgumentError(cat("`channels` must be 0, 3 or 4 for BMP, but got ", channels));
  }
  const auto total = static_cast<std::int64_t>(bytes.size());
  if (total < 32) {
    throw InvalidArgumentError(
        cat("Incomplete bmp content, requires at least 32 bytes to find the "
            "header size, width, height, and bpp, got ",
            total, " bytes"));
  }
  const std::int64_t header = int_at(bytes, 10, 4);
  const std::int64_t width = int_at(bytes, 18, 4);
  const std::int64_t signed_height = int_at(bytes, 22, 4);
  const std::int64_t height = std::abs(signed_height);
  const int stored = int_at(bytes, 28, 2) / 8;
  if (stored != 1 && stored != 3 && stored != 4) {
    throw InvalidArgumentError(
        cat("Number of channels inherent in the image must be 1, 3 or 4, was ", stored));
  }
  if (width <= 0) throw InvalidArgumentError("Width must be positive");
  if (height == 0) throw InvalidArgumentError("Height must be nonzero");
  if (header < 0) throw InvalidArgumentError("header size must be nonnegative");
  if (width * height >= std::numeric_limits<std::int32_t>::max() / 8) {
    throw InvalidArgumentError("Total possible pixel bytes must be less than 2^30");
  }
  const std::int64_t row_size = (stored * width + 3) / 4 * 4;
  if (header + row_size * height != total) {
    throw InvalidArgumentError(
        cat("Input size should match (header_size + row_size * abs_height) but they differ by ",
            total - header - row_size * height));
  }
  const std::int64_t wanted = channels != 0 ? channels : stored;
  std::uint8_t* out = memory({height, width, wanted});
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(bytes.data()) + header;
  for (std::int64_t y = 0; y < height; ++y) {
    const std::int64_t row = signed_height < 0 ? y : height - 1 - y;
    copy_row(pixels + row * row_size, width, stored, wanted, out + y * width * wanted);
  }
}

}  // namespace tandem::cpu
