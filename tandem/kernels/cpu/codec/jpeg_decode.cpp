#include "tandem/kernels/cpu/codec/jpeg_decode.h"

#include <jerror.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/codec/jpeg_error.h"

// The JPEG library reports errors by a jump out of its functions. Each function below that calls it
// sets the place to return to and has no object with a destructor; memory belongs to its callers.

namespace tandem::cpu {
namespace {

// A progressive image of few bytes may ask for any number of passes over all of its pixels.
constexpr int kMaxScans = 500;
// Every block of 64 samples takes at least one bit.
constexpr std::int64_t kMaxSamplesPerByte = 8 * 64;
// No block, which has ten parts of 64 numbers at most, is sent over its bytes more often than this.
constexpr int kMaxRepeats = 10 * 64 * 4;

struct Reader {
  jpeg_decompress_struct info{};
  JpegErrors errors;
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  const JOCTET* data = nullptr;
  std::size_t size = 0;
  bool recover = false;
  bool too_many_scans = false;
  const JOCTET* repeated_from = nullptr;
  int repeats = 0;

  Reader(std::string_view bytes, bool recover_truncated)
      : data(reinterpret_cast<const JOCTET*>(bytes.data())),
        size(bytes.size()),
        recover(recover_truncated) {
    info.err = errors.begin();
    info.client_data = this;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { jpeg_destroy_decompress(&info); }
};

Reader& reader_of(j_decompress_ptr info) { return *static_cast<Reader*>(info->client_data); }

void init_source(j_decompress_ptr info) {
  info->src->next_input_byte = reader_of(info).data;
  info->src->bytes_in_buffer = reader_of(info).size;
}

// Called where the bytes end. While a block is being read the library has not yet reported how far
// it came, so bytes seem to be left: it is then stopped, or to save what can be saved, sent over
// the block's bytes again. TensorFlow's pixels of truncated images come about like this.
::boolean at_end(j_decompress_ptr info) {
  static const JOCTET end_of_image[2] = {0xff, JPEG_EOI};
  Reader& r = reader_of(info);
  if (info->src->bytes_in_buffer > 0) {
    if (!r.recover) return FALSE;
    if (info->src->next_input_byte != r.repeated_from) r.repeats = 0;
    r.repeated_from = info->src->next_input_byte;
    // Where a marker is looked for, the bytes would be searched for ever.
    if (++r.repeats > kMaxRepeats) ERREXIT(info, JERR_FILE_READ);
    return TRUE;
  }
  if (!r.recover || info->src->next_input_byte == end_of_image) ERREXIT(info, JERR_FILE_READ);
  info->src->next_input_byte = end_of_image;
  info->src->bytes_in_buffer = sizeof(end_of_image);
  return TRUE;
}

void skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  const auto wanted = static_cast<std::size_t>(count);
  if (wanted > info->src->bytes_in_buffer) {
    info->src->bytes_in_buffer = 0;
    at_end(info);
    return;
  }
  info->src->next_input_byte += wanted;
  info->src->bytes_in_buffer -= wanted;
}

void ignore(j_decompress_ptr) {}

void count_scans(j_common_ptr common) {
  auto* info = reinterpret_cast<j_decompress_ptr>(common);
  if (info->input_scan_number <= kMaxScans) return;
  reader_of(info).too_many_scans = true;
  ERREXIT(info, JERR_BAD_PROGRESSION);
}

bool read_header(Reader& r) {
  if (setjmp(r.errors.jump)) return false;
  jpeg_create_decompress(&r.info);
  r.source.init_source = init_source;
  r.source.fill_input_buffer = at_end;
  r.source.skip_input_data = skip;
  r.source.resync_to_restart = jpeg_resync_to_restart;
  r.source.term_source = ignore;
  r.info.src = &r.source;
  r.progress.progress_monitor = count_scans;
  r.info.progress = &r.progress;
  return jpeg_read_header(&r.info, TRUE) == JPEG_HEADER_OK;
}

bool compute_size(Reader& r) {
  if (setjmp(r.errors.jump)) return false;
  jpeg_calc_output_dimensions(&r.info);
  return true;
}

// The first column the library will give is `left`, at or before the window's.
bool start(Reader& r, const JpegCrop* crop, JDIMENSION& left) {
  if (setjmp(r.errors.jump)) return false;
  if (!jpeg_start_decompress(&r.info)) return false;
  left = 0;
  if (crop == nullptr) return true;
  left = static_cast<JDIMENSION>(crop->x);
  auto width = static_cast<JDIMENSION>(crop->width);
  jpeg_crop_scanline(&r.info, &left, &width);
  const auto above = static_cast<JDIMENSION>(crop->y);
  return jpeg_skip_scanlines(&r.info, above) == above;
}

// One line; false at the end of the bytes and after errors, which set `failed`.
bool read_line(Reader& r, JSAMPLE* line, bool& failed) {
  if (setjmp(r.errors.jump)) {
    failed = true;
    return false;
  }
  return jpeg_read_scanlines(&r.info, &line, 1) == 1;
}

bool finish(Reader& r) {
  if (setjmp(r.errors.jump)) return false;
  jpeg_finish_decompress(&r.info);
  return true;
}

[[noreturn]] void fail(const Reader& r, std::string_view what) {
  const char* reason = r.too_many_scans              ? "too many passes over the image"
                       : r.errors.message[0] != '\0' ? r.errors.message
                                                     : "the data end too early";
  throw InvalidArgumentError(cat("Invalid JPEG data, ", r.size, " bytes: ", what, ": ", reason));
}

void check(const JpegDecodeOptions& o) {
  if (o.ratio != 1 && o.ratio != 2 && o.ratio != 4 && o.ratio != 8) {
    throw InvalidArgumentError(cat("ratio must be 1, 2, 4, or 8, got ", o.ratio));
  }
  if (o.channels != 0 && o.channels != 1 && o.channels != 3) {
    throw InvalidArgumentError(cat("JPEG images have 1 or 3 channels (0: as in the file), got ",
                                   o.channels, " as channels"));
  }
}

// The library rounds sizes up.
std::int64_t ratio_for(const jpeg_decompress_struct& info, const JpegDecodeOptions& o) {
  if (o.least_height <= 0 || o.least_width <= 0) return o.ratio;
  const auto covers = [&](std::int64_t ratio) {
    return (info.image_height + ratio - 1) / ratio >= o.least_height &&
           (info.image_width + ratio - 1) / ratio >= o.least_width;
  };
  return covers(8) ? 8 : covers(4) ? 4 : covers(2) ? 2 : 1;
}

void check_window(const JpegCrop& w, std::int64_t height, std::int64_t width) {
  if (w.y >= 0 && w.x >= 0 && w.height > 0 && w.width > 0 && w.height <= height - w.y &&
      w.width <= width - w.x) {
    return;
  }
  throw InvalidArgumentError(cat("Invalid crop window: y=", w.y, ", x=", w.x, ", height=", w.height,
                                 ", width=", w.width, " of an image of ", height, " x ", width));
}

void check_size(const Reader& r, const JpegDecodeOptions& o) {
  const auto& info = r.info;
  if (std::int64_t{info.output_height} * info.output_width * info.num_components >= kMaxSamples) {
    throw InvalidArgumentError(cat("JPEG image too large: ", info.output_height, " x ",
                                   info.output_width, " with ", info.num_components,
                                   " components"));
  }
  const std::int64_t pixels = std::int64_t{info.image_height} * info.image_width;
  if (!o.try_recover_truncated && o.acceptable_fraction >= 1 && !info.arith_code &&
      pixels / kMaxSamplesPerByte > static_cast<std::int64_t>(r.size)) {
    throw InvalidArgumentError(cat("Invalid JPEG data: ", r.size, " bytes cannot hold the ",
                                   info.image_height, " x ", info.image_width,
                                   " pixels announced"));
  }
}

// From cyan, magenta, yellow and black, which Adobe's programs write inverted.
void to_rgb(const JSAMPLE* cmyk, std::int64_t width, bool inverted, std::uint8_t* rgb) {
  for (std::int64_t i = 0; i < width; ++i, cmyk += 4, rgb += 3) {
    const int white = inverted ? cmyk[3] : 255 - cmyk[3];
    for (int k = 0; k < 3; ++k) {
      rgb[k] = static_cast<std::uint8_t>(white * (inverted ? cmyk[k] : 255 - cmyk[k]) / 255);
    }
  }
}

// Reads the lines of the image or window; returns how many there were.
std::int64_t read_lines(Reader& r, const ImageSize& size, JDIMENSION skipped_columns,
                        ImageLines& lines) {
  const bool cmyk = r.info.out_color_space == JCS_CMYK;
  const std::int64_t samples = cmyk ? 4 : size.channels;
  const bool direct = !cmyk && r.info.output_width == size.width;
  std::vector<JSAMPLE> line(direct ? 0
                                   : static_cast<std::size_t>(r.info.output_width) *
                                         static_cast<std::size_t>(samples));
  const std::int64_t row_size = size.width * size.channels;
  bool failed = false;
  for (std::int64_t y = 0; y < size.height; ++y) {
    std::uint8_t* const out = lines.place(y);
    if (!read_line(r, direct ? out : line.data(), failed)) {
      if (failed) fail(r, cat("line ", y, " of ", size.height));
      return y;
    }
    if (!direct) {
      const JSAMPLE* from = line.data() + skipped_columns * samples;
      if (cmyk) {
        to_rgb(from, size.width, r.info.saw_Adobe_marker, out);
      } else {
        std::memcpy(out, from, static_cast<std::size_t>(row_size));
      }
    }
    lines.take(y);
  }
  return size.height;
}

// Lines that the data lack: black, or as the last one that there is.
void fill_up(std::int64_t read, const ImageSize& size, bool repeat, ImageLines& lines) {
  const auto row_size = static_cast<std::size_t>(size.width * size.channels);
  const std::uint8_t* last = repeat && read > 0 ? lines.place(read - 1) : nullptr;
  for (std::int64_t y = read; y < size.height; ++y) {
    std::uint8_t* const row = lines.place(y);
    if (last == nullptr) {
      std::memset(row, 0, row_size);
    } else {
      std::memcpy(row, last, row_size);
      last = row;
    }
    lines.take(y);
  }
}

class WholeImage final : public ImageLines {
 public:
  explicit WholeImage(const PixelMemory<std::uint8_t>& memory) : memory_(memory) {}
  void begin(const ImageSize& size) override {
    row_size_ = size.width * size.channels;
    pixels_ = memory_(size);
  }
  std::uint8_t* place(std::int64_t y) override { return pixels_ + y * row_size_; }
  void take(std::int64_t) override {}

 private:
  const PixelMemory<std::uint8_t>& memory_;
  std::int64_t row_size_ = 0;
  std::uint8_t* pixels_ = nullptr;
};

}  // namespace

void decode_jpeg(std::string_view bytes, const JpegDecodeOptions& options,
                 const PixelMemory<std::uint8_t>& memory) {
  WholeImage image(memory);
  decode_jpeg(bytes, options, image);
}

void decode_jpeg(std::string_view bytes, const JpegDecodeOptions& options, ImageLines& lines) {
  check(options);
  Reader r(bytes, options.try_recover_truncated);
  if (!read_header(r)) fail(r, "header");
  auto& info = r.info;
  const std::int64_t channels =
      options.channels != 0 ? options.channels : std::min(info.num_components, 3);
  if (channels == 2) fail(r, "images of two components are not supported");
  const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = channels == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
  info.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
  info.scale_num = 1;
  info.scale_denom = static_cast<unsigned>(ratio_for(info, options));
  info.dct_method = options.accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
  if (!compute_size(r)) fail(r, "size");
  check_size(r, options);

  ImageSize size{info.output_height, info.output_width, channels};
  const JpegCrop* crop = options.crop ? &*options.crop : nullptr;
  if (crop != nullptr) {
    check_window(*crop, size.height, size.width);
    size.height = crop->height;
    size.width = crop->width;
  }
  JDIMENSION left = 0;
  if (!start(r, crop, left)) fail(r, "first scan");
  lines.begin(size);
  const JDIMENSION skipped = crop != nullptr ? static_cast<JDIMENSION>(crop->x) - left : 0;
  const std::int64_t read = read_lines(r, size, skipped, lines);

  if (read < size.height && options.try_recover_truncated) {
    fill_up(read, size, true, lines);
  } else if (read < size.height) {
    const float fraction = static_cast<float>(read) / static_cast<float>(size.height);
    if (fraction < std::min(1.0f, options.acceptable_fraction)) {
      fail(r, cat("only ", read, " of ", size.height, " lines"));
    }
    fill_up(read, size, false, lines);
  } else if (crop == nullptr && !finish(r)) {
    fail(r, "after the last line");
  }
}

ImageSize jpeg_size(std::string_view bytes) {
  Reader r(bytes, false);
  if (!read_header(r)) fail(r, "header");
  if (!compute_size(r)) fail(r, "size");
  return {r.info.output_height, r.info.output_width, r.info.output_components};
}

}  // namespace tandem::cpu
