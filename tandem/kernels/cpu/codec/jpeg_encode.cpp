#include "tandem/kernels/cpu/codec/jpeg_encode.h"

#include <cstdlib>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/codec/jpeg_error.h"

namespace tandem::cpu {
namespace {

constexpr std::string_view kXmpName("http://ns.adobe.com/xap/1.0/\0", 29);

struct Writer {
  jpeg_compress_struct info{};
  JpegErrors errors;
  unsigned char* bytes = nullptr;  // grown by the library with malloc
  unsigned long size = 0;

  Writer() { info.err = errors.begin(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
};

// No object with a destructor here: the library's errors jump back to its beginning.
bool write(Writer& w, const std::uint8_t* pixels, const ImageSize& size, const JpegEncodeOptions& o,
           std::string_view xmp) {
  if (setjmp(w.errors.jump)) return false;
  jpeg_compress_struct& info = w.info;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &w.bytes, &w.size);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.input_components = static_cast<int>(size.channels);
  info.in_color_space = size.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  if (o.optimize_size) info.optimize_coding = TRUE;
  info.density_unit = o.density_in_cm ? 2 : 1;
  info.X_density = static_cast<UINT16>(o.x_density);
  info.Y_density = static_cast<UINT16>(o.y_density);
  jpeg_set_quality(&info, static_cast<int>(o.quality), TRUE);
  if (o.progressive) jpeg_simple_progression(&info);
  if (!o.chroma_downsampling) {
    for (int i = 0; i < info.num_components; ++i) {
      info.comp_info[i].h_samp_factor = 1;
      info.comp_info[i].v_samp_factor = 1;
    }
  }
  jpeg_start_compress(&info, TRUE);
  if (!xmp.empty()) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(xmp.data()),
                      static_cast<unsigned>(xmp.size()));
  }
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPLE*>(pixels + info.next_scanline * size.width * size.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

std::string encode_jpeg(const std::uint8_t* pixels, const ImageSize& size,
                        const JpegEncodeOptions& options) {
  if (size.channels != 1 && size.channels != 3) {
    throw InvalidArgumentError(cat("JPEG images have 1 or 3 channels, got ", size.channels));
  }
  if (size.height <= 0 || size.width <= 0 || size.height > JPEG_MAX_DIMENSION ||
      size.width > JPEG_MAX_DIMENSION || size.height * size.width >= kMaxSamples) {
    throw InvalidArgumentError(cat("An image of ", size.height, " x ", size.width,
                                   " cannot be a JPEG image: sides go from 1 to ",
                                   JPEG_MAX_DIMENSION));
  }
  if (options.quality < 0 || options.quality > 100) {
    throw InvalidArgumentError(cat("quality must be in [0,100], got ", options.quality));
  }
  if (options.x_density < 0 || options.x_density > 65535 || options.y_density < 0 ||
      options.y_density > 65535) {
    throw InvalidArgumentError(cat("x_density and y_density must be in [0,65535], got ",
                                   options.x_density, " and ", options.y_density));
  }
  std::string xmp;
  if (!options.xmp_metadata.empty()) xmp = std::string(kXmpName) + options.xmp_metadata;
  if (xmp.size() > 65533) {
    throw InvalidArgumentError(cat("xmp_metadata of ", options.xmp_metadata.size(),
                                   " bytes does not fit one marker of a JPEG image"));
  }
  Writer w;
  if (!write(w, pixels, size, options, xmp)) {
    throw InternalError(cat("The JPEG library could not encode: ", w.errors.message));
  }
  return {reinterpret_cast<const char*>(w.bytes), w.size};
}

}  // namespace tandem::cpu
